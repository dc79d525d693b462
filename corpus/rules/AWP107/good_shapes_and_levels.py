"""Shapes and numbers, level checks, debug flags, lazy arguments, errors."""

import logging

import torch
from torch import nn

logger = logging.getLogger(__name__)


class Pipeline:
    def __init__(self, unet: nn.Module, debug: bool = False):
        self.unet = unet
        self.debug = debug

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        latents = latents.cuda()
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)
            latents = latents - noise
            print("step", step, tuple(latents.shape), latents.dtype)
            logger.debug("mean %s", latents)
            if self.debug:
                print(latents.mean())
            if logger.isEnabledFor(logging.DEBUG):
                logger.debug(f"mean {latents.mean()}")
            if latents.shape[0] == 0:
                raise RuntimeError(f"empty batch {latents}")
        print("done", latents.mean())
        return latents
