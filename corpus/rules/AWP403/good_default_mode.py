"""The default mode makes a variable of a number that changes: two compilations, shown at low confidence only."""

import torch
from torch import nn


class Sampler:
    def __init__(self, unet: nn.Module):
        self.unet = torch.compile(unet)

    @torch.inference_mode()
    def infer(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)  # expect[low]: AWP403
            latents = latents - noise * 0.05
        return latents
