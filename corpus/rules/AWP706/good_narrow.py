"""float32 all along, NumPy data cast before it moves."""

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
            spread = latents.float().std(dim=-1, keepdim=True)
            grid = torch.zeros(64, 64, dtype=torch.float32, device="cuda")
            table = torch.from_numpy(np.linspace(0.0, 1.0, 64).astype(np.float32)).to("cuda")
            other = torch.from_numpy(np.linspace(0.0, 1.0, 64)).to("cuda", torch.float32)
            third = torch.from_numpy(np.linspace(0.0, 1.0, 64, dtype=np.float32)).to("cuda")
            latents = self.unet(latents / spread + grid[:1], t) * table * other * third
        return latents
