"""The same with a schedule on the device: each step's time is read back."""

from __future__ import annotations

import torch
from torch import nn


class InverseScheduler:
    def set_timesteps(self, steps: int, device: torch.device | None = None) -> None:
        self.timesteps = torch.linspace(0.0, 999.0, steps).round().to(device)

    def step(self, noise: torch.Tensor, t: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        return latents + noise * (t + 1.0).sqrt()


class InversionPipeline:
    def __init__(self, unet: nn.Module) -> None:
        self.unet = unet.to("cuda")
        self.scheduler = InverseScheduler()

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, text: torch.Tensor, steps: int = 50) -> torch.Tensor:
        self.scheduler.set_timesteps(steps, device=latents.device)
        timesteps = self.scheduler.timesteps
        kept = []
        for t in timesteps:
            if int(t) < 500:  # expect: AWP101
                kept.append(latents)
            noise = self.unet(latents, t, text)
            latents = self.scheduler.step(noise, t, latents)
        return torch.stack(kept)
