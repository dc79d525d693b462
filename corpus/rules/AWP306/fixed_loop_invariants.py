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
        bias = (1.0 - attention_mask[:, None, None, :]) * -10000.0
        positions = torch.arange(attention_mask.shape[1], device=attention_mask.device)
        scale_once = torch.exp(self.scale)
        for layer in self.layers:
            hidden_states = layer(hidden_states, bias, positions)
            hidden_states = hidden_states * scale_once
        return hidden_states


class Pipeline:
    def __init__(self, unet: nn.Module, scheduler):
        self.unet = unet
        self.scheduler = scheduler

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, prompt_embeds: torch.Tensor, guidance_scale: float, timesteps):
        latents = latents.to("cuda")
        prompt_embeds = prompt_embeds.to("cuda")
        embeds = torch.cat([prompt_embeds, prompt_embeds])
        freqs = torch.exp(-math.log(10000) * torch.arange(0, 128, device="cuda") / 128)
        guidance = torch.full([1], guidance_scale, device="cuda")
        for t in timesteps:
            noise = self.unet(latents, t * freqs, embeds, guidance)
            latents = self.scheduler.step(noise, t, latents)
        return latents
