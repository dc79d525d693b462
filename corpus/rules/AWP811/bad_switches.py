"""Debugging switches in a service."""

import os

import torch

os.environ["CUDA_LAUNCH_BLOCKING"] = "1"  # expect: AWP811
os.environ.setdefault("TORCH_DISTRIBUTED_DEBUG", "DETAIL")  # expect: AWP811
torch.autograd.set_detect_anomaly(True)  # expect: AWP811
torch.use_deterministic_algorithms(True)  # expect: AWP811
torch.cuda.set_sync_debug_mode("warn")  # expect: AWP811

model = torch.nn.Linear(8, 8).to("cuda").eval()
