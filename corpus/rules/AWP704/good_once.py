"""Once around the loop, nested inside another one, cache off on purpose, once a request."""

import torch
from torch import nn


@torch.inference_mode()
def denoise(unet: nn.Module, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
    latents = latents.to("cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        for t in range(num_inference_steps):
            with torch.autocast("cuda", enabled=False):
                scaled = unet(latents.float(), t)
            with torch.autocast("cuda", dtype=torch.float16):
                latents = latents - 0.1 * unet(scaled, t)
    for t in range(num_inference_steps):
        with torch.autocast("cuda", dtype=torch.bfloat16, cache_enabled=False):
            latents = unet(latents, t)
    return latents


@torch.inference_mode()
def predict(model: nn.Module, images: torch.Tensor) -> torch.Tensor:
    with torch.autocast("cuda", dtype=torch.bfloat16):
        return model(images.to("cuda"))
