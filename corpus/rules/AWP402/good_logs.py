"""Warnings, logs that are asked for or stand outside of modules, and tests of what was unwrapped."""

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class MultiControl(nn.Module):
    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        return latents * 2.0


class Denoiser(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        logger.info("%d layers", len(layers))
        self.layers = layers

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        if latents.shape[-1] % 8 != 0:
            logger.warning("the width is no multiple of 8")
        if logger.isEnabledFor(logging.DEBUG):
            logger.debug(f"{latents.shape}")
        for layer in self.layers:
            latents = layer(latents)
        return latents


class Pipeline:
    def __init__(self, denoiser: Denoiser, control: nn.Module):
        self.denoiser = denoiser
        self.control = control

    def check_inputs(self) -> None:
        compiled = hasattr(self.control, "_orig_mod")
        if isinstance(self.control, Denoiser) or (compiled and isinstance(self.control._orig_mod, Denoiser)):
            raise TypeError("a denoiser is no control")
        if isinstance(self.control, MultiControl) or (compiled and isinstance(self.control._orig_mod, MultiControl)):
            logger.info("several controls")

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        self.check_inputs()
        logger.info("%d steps", num_inference_steps)
        control = self.control._orig_mod if hasattr(self.control, "_orig_mod") else self.control
        for _ in range(num_inference_steps):
            scale = 2.0 if isinstance(control, MultiControl) else 1.0
            latents = latents - scale * self.denoiser(latents)
        return latents
