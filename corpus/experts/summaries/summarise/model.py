"""An encoder-decoder with relative positions in the attention scores."""

from __future__ import annotations

import math
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
    hidden: int
    max_input: int
    buckets: int = 32
    reach: int = 128


SIZES = {
    "cpu": ModelConfig(vocab_size=512, dim=64, layers=2, heads=4, hidden=128, max_input=64),
    "gpu": ModelConfig(vocab_size=32_128, dim=1024, layers=16, heads=16, hidden=2816, max_input=512),
}


class RelativeBias(nn.Module):
    """What is added to the scores (1, heads, queries, keys), by the distance between query and key."""

    def __init__(self, config: ModelConfig, both_ways: bool) -> None:
        super().__init__()
        self.buckets = config.buckets
        self.reach = config.reach
        self.both_ways = both_ways
        self.weight = nn.Embedding(config.buckets, config.heads)
        self.tables: dict[tuple[int, int], torch.Tensor] = {}

    def bucket(self, distance: torch.Tensor) -> torch.Tensor:
        """Near distances have a bucket each, far ones share buckets that grow with the logarithm."""
        half = self.buckets // 2 if self.both_ways else self.buckets
        side = (distance > 0).long() * half if self.both_ways else 0
        distance = distance.abs() if self.both_ways else (-distance).clamp(min=0)
        exact = half // 2
        far = exact + torch.log(distance.clamp(min=1).float() / exact) / math.log(self.reach / exact) * (half - exact)
        far = far.long().clamp(max=half - 1)
        return side + torch.where(distance < exact, distance, far)

    def forward(self, queries: int, keys: int) -> torch.Tensor:
        if (queries, keys) not in self.tables:
            device = self.weight.weight.device
            distance = torch.arange(keys, device=device) - torch.arange(keys - queries, keys, device=device)[:, None]
            self.tables[queries, keys] = self.weight(self.bucket(distance)).permute(2, 0, 1)[None].contiguous()
        return self.tables[queries, keys]


class Attention(nn.Module):
    """Attention without scaling: the initial weights take care of it. Queries come from x, the rest from ``source``."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.query = nn.Linear(config.dim, config.dim, bias=False)
        self.key_value = nn.Linear(config.dim, 2 * config.dim, bias=False)
        self.out = nn.Linear(config.dim, config.dim, bias=False)
        nn.init.normal_(self.query.weight, std=(config.dim * config.dim / config.heads) ** -0.5)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.view(x.shape[0], x.shape[1], self.heads, -1).transpose(1, 2)

    def keys(self, source: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Keys and values (rows, heads, length, head_dim)."""
        key, value = self.key_value(source).chunk(2, dim=-1)
        return self.split(key), self.split(value)

    def forward(self, x: torch.Tensor, key: torch.Tensor, value: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        context = F.scaled_dot_product_attention(self.split(self.query(x)), key, value, attn_mask=bias, scale=1.0)
        return self.out(context.transpose(1, 2).reshape(x.shape))


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate = nn.Linear(config.dim, config.hidden, bias=False)
        self.up = nn.Linear(config.dim, config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.down(F.gelu(self.gate(x), approximate="tanh") * self.up(x))


class EncoderLayer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config)
        self.norm2 = nn.RMSNorm(config.dim)
        self.feed_forward = FeedForward(config)

    def forward(self, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        normed = self.norm1(x)
        x = x + self.attention(normed, *self.attention.keys(normed), bias)
        return x + self.feed_forward(self.norm2(x))


class DecoderLayer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config)
        self.norm2 = nn.RMSNorm(config.dim)
        self.cross = Attention(config)
        self.norm3 = nn.RMSNorm(config.dim)
        self.feed_forward = FeedForward(config)

    def forward(
        self,
        x: torch.Tensor,
        place: torch.Tensor,
        bias: torch.Tensor,
        past: tuple[torch.Tensor, torch.Tensor],
        memory: tuple[torch.Tensor, torch.Tensor],
        memory_bias: torch.Tensor,
    ) -> torch.Tensor:
        """One position x (rows, 1, dim) at ``place`` (1,); its keys and values are written into ``past``."""
        normed = self.norm1(x)
        for buffer, new in zip(past, self.attention.keys(normed)):
            buffer.index_copy_(2, place, new)
        end = bias.shape[-1]
        x = x + self.attention(normed, past[0][:, :, :end], past[1][:, :, :end], bias)
        x = x + self.cross(self.norm2(x), *memory, memory_bias)
        return x + self.feed_forward(self.norm3(x))


class Summariser(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.encoder_bias = RelativeBias(config, both_ways=True)
        self.encoder = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.encoder_norm = nn.RMSNorm(config.dim)
        self.decoder_bias = RelativeBias(config, both_ways=False)
        self.decoder = nn.ModuleList(DecoderLayer(config) for _ in range(config.layers))
        self.decoder_norm = nn.RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def hide(self, padding: torch.Tensor) -> torch.Tensor:
        """What keeps queries from seeing padding (rows, length)."""
        least = torch.finfo(self.embed.weight.dtype).min
        return padding[:, None, None, :].to(self.embed.weight.dtype) * least

    def encode(self, tokens: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """Memory (rows, length, dim) of tokens (rows, length); ``padding`` is True where there is none."""
        x = self.embed(tokens)
        bias = self.encoder_bias(tokens.shape[1], tokens.shape[1]) + self.hide(padding)
        for layer in self.encoder:
            x = layer(x, bias)
        return self.encoder_norm(x)

    def decode(
        self,
        tokens: torch.Tensor,
        place: torch.Tensor,
        bias: torch.Tensor,
        past: torch.Tensor,
        memory: torch.Tensor,
        memory_bias: torch.Tensor,
    ) -> torch.Tensor:
        """Logits (rows, vocab) of what follows tokens (rows, 1) at ``place`` (1,).

        ``past`` (layers, 2, rows, heads, limit, head_dim) is written; ``memory`` has the same form; ``bias`` (1, heads,
        1, end) says how much of the past is read.
        """
        x = self.embed(tokens)
        for number, layer in enumerate(self.decoder):
            x = layer(
                x, place, bias, (past[number, 0], past[number, 1]), (memory[number, 0], memory[number, 1]), memory_bias
            )
        return self.head(self.decoder_norm(x[:, 0]))
