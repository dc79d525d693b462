"""float64 on the device: by method, by type, by factory, and from NumPy's default."""

import numpy as np
import torch
from torch import nn


class Sampler(nn.Module):
    def __init__(self, unet: nn.Module):
        super().__init__()
        self.unet = unet

    @torch.no_grad()
    def generate(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        latents = latents.to("cuda")
        for t in range(num_inference_steps):
            spread = latents.double().std(dim=-1, keepdim=True)  # expect[low]: AWP706
            wide = latents.to(torch.float64)  # expect[low]: AWP706
            grid = torch.zeros(64, 64, dtype=torch.float64, device="cuda")  # expect[low]: AWP706
            table = torch.from_numpy(np.linspace(0.0, 1.0, 64)).to("cuda")  # expect[low]: AWP706
            latents = self.unet(latents / spread + wide.mean() + grid[:1], t) * table
        return latents
