"""A bidirectional encoder that keeps one vector a token."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class EncoderConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    out: int
    max_length: int


SIZES = {
    "cpu": EncoderConfig(vocab_size=2048, dim=96, layers=3, heads=4, out=32, max_length=64),
    "gpu": EncoderConfig(vocab_size=30_522, dim=1024, layers=24, heads=16, out=128, max_length=300),
}


def sinusoids(length: int, dim: int) -> torch.Tensor:
    """Positions (length, dim) as sines and cosines of growing wave length."""
    rates = torch.exp(torch.arange(0, dim, 2, dtype=torch.float32) * (-math.log(10_000.0) / dim))
    angles = torch.arange(length, dtype=torch.float32)[:, None] * rates
    return torch.cat((angles.sin(), angles.cos()), dim=-1)


class EncoderLayer(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.dim)
        self.query = nn.Linear(config.dim, config.dim)
        self.key = nn.Linear(config.dim, config.dim)
        self.value = nn.Linear(config.dim, config.dim)
        self.qkv: nn.Linear | None = None
        self.out = nn.Linear(config.dim, config.dim)
        self.norm2 = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)
        self.dropout = nn.Dropout(0.1)

    @torch.no_grad()
    def fuse(self) -> None:
        """One product in the place of three, once the weights are there."""
        parts = (self.query, self.key, self.value)
        weight = torch.cat([part.weight for part in parts])
        self.qkv = nn.Linear(weight.shape[1], weight.shape[0], device=weight.device, dtype=weight.dtype)
        self.qkv.weight.copy_(weight)
        self.qkv.bias.copy_(torch.cat([part.bias for part in parts]))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        assert self.qkv is not None
        query, key, value = map(self.split, self.qkv(self.norm1(x)).chunk(3, dim=-1))
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.dropout(self.out(context.transpose(1, 2).reshape(x.shape)))
        return x + self.dropout(self.down(F.gelu(self.up(self.norm2(x)))))


class TokenEncoder(nn.Module):
    """Unit vectors (rows, length, out) of tokens (rows, length); token 0 is padding."""

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim, padding_idx=0)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.project = nn.Linear(config.dim, config.out, bias=False)
        self.register_buffer("positions", sinusoids(config.max_length, config.dim), persistent=False)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.positions[: tokens.shape[1]]
        mask = (tokens != 0)[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        return F.normalize(self.project(self.norm(x)), dim=-1)
