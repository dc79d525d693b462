"""A decorator that waits for the device behind each step, left over from looking for where time goes."""

import functools

import torch
from torch import nn


def staged(name: str):
    def wrap(function):
        @functools.wraps(function)
        def inner(*args, **kwargs):
            out = function(*args, **kwargs)
            torch.cuda.synchronize()  # expect: AWP106
            return out

        return inner

    return wrap


class ToyPipeline:
    def __init__(self, unet: nn.Module, vae: nn.Module):
        self.unet = unet.cuda()
        self.vae = vae.cuda()

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, timesteps: list) -> torch.Tensor:
        for t in timesteps:
            latents = self.denoise(latents, t)
        return self.vae(latents)

    @staged("denoise")
    def denoise(self, latents: torch.Tensor, t: int) -> torch.Tensor:
        return latents - self.unet(latents, t)
