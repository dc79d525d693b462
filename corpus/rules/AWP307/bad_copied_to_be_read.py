"""Clones that nothing could tell from the original."""

import torch
from torch import nn


class Guidance(nn.Module):
    def __init__(self, unet: nn.Module, dim: int):
        super().__init__()
        self.unet = unet
        self.register_buffer("state", torch.zeros(1, dim))

    @torch.no_grad()
    def forward(self, latents: torch.Tensor, prompt_embeds: torch.Tensor) -> torch.Tensor:
        both = torch.cat([latents.clone(), latents])  # expect: AWP307
        rows = torch.stack((prompt_embeds.clone(), prompt_embeds.clone()), dim=0)  # expect: AWP307
        noise = self.unet(both, rows)
        self.state.copy_(noise.clone())  # expect: AWP307
        return latents.clone() - 0.1 * noise  # expect: AWP307


class Pipeline:
    def __init__(self, guidance: Guidance):
        self.guidance = guidance

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, prompt_embeds: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        for _ in range(num_inference_steps):
            latents = self.guidance(latents, prompt_embeds)
        return latents
