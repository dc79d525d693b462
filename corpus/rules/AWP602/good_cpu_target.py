"""Moves whose target is the host, and objects that are no tensors."""

import torch
from torch import nn


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> list:
        frames = []
        for step in range(num_inference_steps):
            latents = self.unet(latents, step)
            blank = torch.zeros(3, 8, 8).to("cpu")
            frames.append(blank)
            self.unet.to("cuda")
        return frames
