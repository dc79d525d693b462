"""An Euler scheduler over a fixed row of noise levels."""

from __future__ import annotations

import torch


class EulerScheduler:
    """``timesteps`` live on the device, where the model wants them, and as numbers in ``times``; ``sigmas`` are numbers.

    Everything is asked by the number of the step.
    """

    def __init__(self, steps: int, device: torch.device) -> None:
        self.sigmas = torch.cat((torch.linspace(14.0, 0.1, steps), torch.zeros(1))).tolist()
        times = torch.linspace(999.0, 0.0, steps)
        self.times = times.tolist()
        self.timesteps = times.to(device)

    def scale(self, latents: torch.Tensor, number: int) -> torch.Tensor:
        """The input that the model expects at a step."""
        return latents / (self.sigmas[number] ** 2 + 1) ** 0.5

    def step(self, noise: torch.Tensor, number: int, latents: torch.Tensor) -> torch.Tensor:
        """Latents one noise level lower."""
        sigma, following = self.sigmas[number], self.sigmas[number + 1]
        if following == 0.0:
            return latents - sigma * noise
        return latents + (following - sigma) * noise
