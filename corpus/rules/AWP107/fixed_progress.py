"""Progress messages that format device tensors."""

import logging
import warnings

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        latents = latents.cuda()
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)
            latents = latents - noise
            print("step", step, latents.std())
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug(f"step {step}: mean {latents.mean():.3f}")
            if logger.isEnabledFor(logging.INFO):
                logger.info("largest %s", latents.abs().max())
        return latents


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states) * attention_mask.unsqueeze(-1)
            warnings.warn("mask sum {}".format(attention_mask.sum()))
        return hidden_states
