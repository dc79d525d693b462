"""An Euler scheduler over a fixed row of noise levels."""

from __future__ import annotations

import torch


class EulerScheduler:
    """``timesteps`` live on the device, where the model wants them; ``sigmas`` stay on the host for the arithmetic."""

    def __init__(self, steps: int, device: torch.device) -> None:
        self.sigmas = torch.cat((torch.linspace(14.0, 0.1, steps), torch.zeros(1)))
        self.timesteps = torch.linspace(999.0, 0.0, steps, device=device)

    def scale(self, latents: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        """The input that the model expects at a time step."""
        sigma = self.sigmas[self.index_of(timestep)].item()
        return latents / (sigma**2 + 1) ** 0.5

    def index_of(self, timestep: torch.Tensor) -> int:
        found = (self.timesteps == timestep).nonzero()
        return int(found[0, 0])

    def step(self, noise: torch.Tensor, timestep: torch.Tensor, latents: torch.Tensor) -> torch.Tensor:
        """Latents one noise level lower."""
        index = self.index_of(timestep)
        sigma = self.sigmas[index].item()
        following = self.sigmas[index + 1].item()
        if following == 0.0:
            return latents - sigma * noise
        return latents + (following - sigma) * noise
