"""Details logged in every step, and a test that a compiled module does not pass."""

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class MultiControl(nn.Module):
    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return latents * 2.0


class Denoiser(nn.Module):
    def __init__(self, layers: nn.ModuleList, factor: int):
        super().__init__()
        self.layers = layers
        self.factor = factor

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        if any(side > self.factor for side in latents.shape[-2:]):
            logger.info("sides above %d", self.factor)  # expect: AWP402
        for layer in self.layers:
            logger.debug(f"layer {layer} at {latents.shape}")  # expect: AWP402
            latents = layer(latents)
        return latents


class Pipeline:
    def __init__(self, denoiser: Denoiser, control: nn.Module):
        self.denoiser = denoiser
        self.control = control

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        control = self.control._orig_mod if hasattr(self.control, "_orig_mod") else self.control
        weights = [1.0] * (2 if isinstance(control, MultiControl) else 1)
        for _ in range(num_inference_steps):
            scale = weights[0] if isinstance(self.control, MultiControl) else 1.0  # expect: AWP402
            latents = latents - scale * self.denoiser(latents)
        return latents
