"""A decoder-only model with a cache that is made once and written in place."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    max_length: int


TARGETS = {
    "cpu": ModelConfig(vocab_size=256, dim=160, layers=5, heads=5, max_length=192),
    "gpu": ModelConfig(vocab_size=32_000, dim=2048, layers=20, heads=16, max_length=768),
}
DRAFTS = {
    "cpu": ModelConfig(vocab_size=256, dim=64, layers=1, heads=4, max_length=192),
    "gpu": ModelConfig(vocab_size=32_000, dim=512, layers=4, heads=8, max_length=768),
}


class Cache:
    """Keys and values of all layers (layers, heads, max_length, head_dim) of one sequence, and how far it is filled."""

    def __init__(self, config: ModelConfig, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.layers, 1, config.heads, config.max_length, config.dim // config.heads)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.columns = torch.arange(config.max_length, device=device)
        self.length = 0

    def update(
        self, layer: int, key: torch.Tensor, value: torch.Tensor, places: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Write at ``places``; everything up to ``end``."""
        self.keys[layer].index_copy_(2, places, key)
        self.values[layer].index_copy_(2, places, value)
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]

    def rewind(self, length: int) -> None:
        """Forget what lies behind ``length``; it is overwritten by what comes next."""
        self.length = min(self.length, length)


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.heads = config.heads
        self.layer = layer
        self.qkv = nn.Linear(config.dim, 3 * config.dim, bias=False)
        self.out = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, places: torch.Tensor, cache: Cache) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(x).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        key, value = cache.update(self.layer, key, value, places, mask.shape[1])
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(context.transpose(1, 2).reshape(rows, length, dim))


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config, layer)
        self.norm2 = nn.RMSNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim, bias=False)
        self.down = nn.Linear(4 * config.dim, config.dim, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, places: torch.Tensor, cache: Cache) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), mask, places, cache)
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Decoder(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.position = nn.Embedding(config.max_length, config.dim)
        self.layers = nn.ModuleList(Layer(config, number) for number in range(config.layers))
        self.norm = nn.RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor, places: torch.Tensor, cache: Cache, end: int) -> torch.Tensor:
        """Logits (1, length, vocab) of tokens (1, length) at ``places`` (length,); the cache is read up to ``end``."""
        x = self.embed(tokens) + self.position(places)
        mask = cache.columns[:end] <= places[:, None]
        for layer in self.layers:
            x = layer(x, mask, places, cache)
        return self.head(self.norm(x))


def build(config: ModelConfig, device: torch.device, dtype: torch.dtype, seed: int) -> Decoder:
    """A decoder whose weights depend on the seed alone."""
    torch.manual_seed(seed)
    return Decoder(config).to(device, dtype).eval().requires_grad_(False)
