"""A bidirectional encoder with masked mean pooling."""

from __future__ import annotations

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
    max_length: int


SIZES = {
    "cpu": EncoderConfig(vocab_size=1024, dim=128, layers=4, heads=4, max_length=96),
    "gpu": EncoderConfig(vocab_size=30_000, dim=1024, layers=24, heads=16, max_length=512),
}


class EncoderLayer(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.norm2 = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        x = x + self.out(context.transpose(1, 2).reshape(rows, length, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class Encoder(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim, padding_idx=0)
        self.position = nn.Embedding(config.max_length, config.dim)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        """Unit vectors (rows, dim) of token sequences (rows, length); token 0 is padding."""
        rows, length = tokens.shape
        if length > self.config.max_length:
            raise ValueError(f"{length} tokens, {self.config.max_length} at most")
        present = tokens != 0
        x = self.embed(tokens) + self.position.weight[:length]
        mask = present[:, None, None, :]
        for layer in self.layers:
            x = layer(x, mask)
        weights = present.unsqueeze(-1).to(x.dtype)
        pooled = (self.norm(x) * weights).sum(dim=1) / weights.sum(dim=1).clamp(min=1.0)
        return F.normalize(pooled, dim=-1)
