"""Long elementwise chains in layers and steps: over statements, in one expression, with in-place spellings."""

import torch
from torch import nn


class Gated(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.decay = nn.Parameter(torch.zeros(dim))

    def forward(self, hidden_states: torch.Tensor, residual: torch.Tensor) -> torch.Tensor:
        rate = torch.exp(-torch.exp(self.decay))
        mixed = hidden_states * rate + residual * (1.0 - rate)
        gate = torch.sigmoid(mixed - hidden_states)
        return gate * mixed + (1 - gate) * residual  # expect: AWP301


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Gated(dim) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states, hidden_states)
        return hidden_states


@torch.inference_mode()
def denoise(unet: nn.Module, latents: torch.Tensor, num_inference_steps: int, scale: float) -> torch.Tensor:
    latents = latents.to("cuda")
    for step in range(num_inference_steps):
        cond = unet(latents, step)
        uncond = unet(latents, None)
        guided = uncond + scale * (cond - uncond)
        rescaled = guided.mul(0.7).add(cond * 0.3)
        noise = (latents - rescaled).pow(2).sqrt() * 0.18
        latents = latents - noise * 0.5 + torch.tanh(rescaled)  # expect[low]: AWP301
    return latents
