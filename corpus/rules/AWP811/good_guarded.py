"""Off, below a debug flag, for a reproducible mode, in a test, with a reason."""

import os

import torch

DEBUG = bool(os.environ.get("DEBUG"))
os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
os.environ["CUDA_VISIBLE_DEVICES"] = "1"
torch.autograd.set_detect_anomaly(False)

if DEBUG:
    torch.cuda.set_sync_debug_mode("warn")


def set_seed(seed: int) -> None:
    torch.manual_seed(seed)
    torch.use_deterministic_algorithms(True)  # expect[low]: AWP811


def test_kernels() -> None:
    os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
    assert torch.cuda.is_available()


# the auditors compare our results bit by bit
torch.use_deterministic_algorithms(True)  # expect[low]: AWP811
