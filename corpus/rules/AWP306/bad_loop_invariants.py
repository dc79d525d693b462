"""Masks, tables and constants rebuilt in every pass of a loop over layers or steps."""

import math

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList, dim: int):
        super().__init__()
        self.layers = layers
        self.scale = nn.Parameter(torch.ones(dim))

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            bias = (1.0 - attention_mask[:, None, None, :]) * -10000.0  # expect: AWP306
            positions = torch.arange(attention_mask.shape[1], device=attention_mask.device)  # expect: AWP306
            hidden_states = layer(hidden_states, bias, positions)
            hidden_states = hidden_states * torch.exp(self.scale)  # expect: AWP306
        return hidden_states


class Pipeline:
    def __init__(self, unet: nn.Module, scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, prompt_embeds: torch.Tensor, guidance_scale: float, timesteps):
        latents = latents.to("cuda")
        prompt_embeds = prompt_embeds.to("cuda")
        for t in timesteps:
            guidance = torch.full([1], guidance_scale, device="cuda")  # expect[low]: AWP306
            embeds = torch.cat([prompt_embeds, prompt_embeds])  # expect[low]: AWP306
            freqs = torch.exp(-math.log(10000) * torch.arange(0, 128, device="cuda") / 128)  # expect[low]: AWP306
            noise = self.unet(latents, t * freqs, embeds, guidance)
            latents = self.scheduler.step(noise, t, latents)
        return latents
