"""Steps compiled in the default mode."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = torch.compile(unet, fullgraph=True)

    @torch.inference_mode()
    def infer(self, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        for t in timesteps:
            latents = latents - self.unet(latents, t) * 0.05  # expect[low]: AWP405
        return latents
