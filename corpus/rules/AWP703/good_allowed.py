"""Allowed, or left alone; operands in their own type."""

import torch
from torch import nn

torch.backends.cuda.matmul.allow_tf32 = True
torch.set_float32_matmul_precision("high")

model = nn.Linear(512, 512).to("cuda", torch.bfloat16).eval()


@torch.inference_mode()
def denoise(latents: torch.Tensor, keys: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
    latents = latents.to("cuda")
    keys = keys.to("cuda")
    for _ in range(num_inference_steps):
        mixed = torch.matmul(latents, keys.transpose(-1, -2)).float()
        half = latents.float() @ keys.half().float().to(latents.dtype)
        latents = model(mixed.to(latents.dtype)) + half
    return latents
