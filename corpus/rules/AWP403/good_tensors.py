"""Tensors of fixed size, ``dynamic=True``, and a counter outside the compiled code."""

import torch
from torch import nn


class Sampler:
    def __init__(self, unet: nn.Module, decoder: nn.Module):
        self.unet = torch.compile(unet, mode="reduce-overhead")
        self.decoder = torch.compile(decoder, dynamic=True)
        self.calls = 0

    @torch.inference_mode()
    def infer(self, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
        for t in timesteps:
            self.calls += 1
            noise = self.unet(latents, t)
            latents = latents - noise * 0.05
        return latents

    @torch.inference_mode()
    def generate(self, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            logits = self.decoder(tokens)
            tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
        return tokens


class Encoder(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.calls = 0

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self.proj(hidden_states)
