"""The same number read from the device in every pass, in a loop and in every layer of a tower."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
        max_seqlen = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
        return self.proj(hidden_states)[:max_seqlen]


class Tower(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention(dim) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states, cu_seqlens)
        return hidden_states


class Pipeline:
    def __init__(self, unet: nn.Module):
        self.unet = unet

    @torch.no_grad()
    def __call__(self, latents: torch.Tensor, guidance: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        guidance = guidance.to("cuda")
        guidance_once = float(guidance)
        limit = guidance.abs().max().item()
        for step in range(num_inference_steps):
            noise = self.unet(latents, step)
            latents = latents - guidance_once * noise
            latents = latents.clamp(-limit, limit)
        return latents
