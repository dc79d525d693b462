"""Caches that grow before the steps, and encoders that carry the parameter of a decoder along."""

import torch
from torch import nn


class ConditionCache:
    """Keys and values of the condition images of a sample; filled once, read at every step."""

    def __init__(self):
        self.k_cache: torch.Tensor | None = None

    def store(self, k: torch.Tensor) -> None:
        self.k_cache = k if self.k_cache is None else torch.cat([self.k_cache, k], dim=1)  # expect[low]: AWP506


class EncoderAttention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, hidden_states: torch.Tensor, past_key_value: tuple | None = None) -> torch.Tensor:
        query, key, value = self.qkv(hidden_states).chunk(3, dim=-1)
        if past_key_value is not None:
            key = torch.cat([past_key_value[0], key], dim=1)  # expect[low]: AWP506
            value = torch.cat([past_key_value[1], value], dim=1)  # expect[low]: AWP506
        return nn.functional.scaled_dot_product_attention(query, key, value)


class Denoiser(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.k_proj = nn.Linear(dim, dim)
        self.layers = nn.ModuleList([EncoderAttention(dim) for _ in range(depth)])

    def forward(self, latents: torch.Tensor, cache: ConditionCache, writes: bool) -> torch.Tensor:
        if writes:
            cache.store(self.k_proj(latents))
        for layer in self.layers:
            latents = layer(latents)
        return latents


class Pipeline:
    def __init__(self, denoiser: Denoiser):
        self.denoiser = denoiser

    @torch.inference_mode()
    def __call__(self, images: list, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
        cache = ConditionCache()
        for image in images:
            self.denoiser(image.to(latents.device), cache, True)
        for _ in range(num_inference_steps):
            latents = latents - 0.1 * self.denoiser(latents, cache, False)
        return latents
