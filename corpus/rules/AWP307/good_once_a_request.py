"""One clone once a request, in front of all the steps."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, mask: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        masked = torch.cat([latents.clone(), mask])  # expect[low]: AWP307
        for _ in range(num_inference_steps):
            masked = masked - 0.1 * self.unet(masked)
        return masked
