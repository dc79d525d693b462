"""Values that the loop writes, reads before the loop, host values."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, guidance: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        guidance = guidance.to("cuda")
        scale = guidance.item()
        host = guidance.cpu()
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)
            norm = noise.norm().item()
            latents = latents - scale * noise / norm
            guidance.mul_(0.9)
            strength = guidance.item()
            latents = latents * strength * host.item()
        return latents
