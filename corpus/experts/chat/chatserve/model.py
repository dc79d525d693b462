"""A Llama-style decoder: RMSNorm, rotary positions, grouped-query attention, SwiGLU."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from chatserve.cache import KVCache
from chatserve.config import ModelConfig


class RMSNorm(nn.Module):
    def __init__(self, dim: int, eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))
        self.eps = eps

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, self.eps)


class RotaryTable(nn.Module):
    """Cosines and sines of all positions, made once."""

    def __init__(self, head_dim: int, max_length: int, theta: float) -> None:
        super().__init__()
        frequencies = theta ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        angles = torch.outer(torch.arange(max_length, dtype=torch.float32), frequencies)
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.cos[positions], self.sin[positions]


def apply_rotary(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads = config.heads
        self.kv_heads = config.kv_heads
        self.head_dim = config.head_dim
        self.widths = [config.heads * self.head_dim, config.kv_heads * self.head_dim, config.kv_heads * self.head_dim]
        self.qkv = nn.Linear(config.dim, sum(self.widths), bias=False)
        self.out = nn.Linear(config.heads * self.head_dim, config.dim, bias=False)
        self.scale = 1.0 / math.sqrt(self.head_dim)

    def forward(
        self,
        x: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        positions: torch.Tensor,
        end: int,
        cache: KVCache,
    ) -> torch.Tensor:
        rows, length, _ = x.shape
        query, key, value = self.qkv(x).split(self.widths, dim=-1)
        query = query.view(rows, length, self.heads, self.head_dim).transpose(1, 2)
        key = key.view(rows, length, self.kv_heads, self.head_dim).transpose(1, 2)
        value = value.view(rows, length, self.kv_heads, self.head_dim).transpose(1, 2)
        query = apply_rotary(query, *rotary)
        key = apply_rotary(key, *rotary)

        key, value = cache.update(self.layer, key, value, positions, end)
        context = F.scaled_dot_product_attention(
            query, key, value, attn_mask=mask, scale=self.scale, enable_gqa=self.heads != self.kv_heads
        )

        return self.out(context.transpose(1, 2).reshape(rows, length, -1))


class FeedForward(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(F.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.attention_norm = RMSNorm(config.dim, config.norm_eps)
        self.attention = Attention(config, layer)
        self.feed_forward_norm = RMSNorm(config.dim, config.norm_eps)
        self.feed_forward = FeedForward(config)

    def forward(
        self,
        x: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        positions: torch.Tensor,
        end: int,
        cache: KVCache,
    ) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), rotary, mask, positions, end, cache)
        return x + self.feed_forward(self.feed_forward_norm(x))


class ChatModel(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.blocks = nn.ModuleList(Block(config, layer) for layer in range(config.layers))
        self.norm = RMSNorm(config.dim, config.norm_eps)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self.rotary = RotaryTable(config.head_dim, config.max_length, config.rope_theta)
        self.register_buffer("columns", torch.arange(config.max_length), persistent=False)

    def attention_mask(
        self, positions: torch.Tensor, padding: torch.Tensor, end: int, dtype: torch.dtype
    ) -> torch.Tensor:
        """Additive mask (rows, 1, length, end): causal, and nothing sees the padding on the left."""
        columns = self.columns[:end]
        visible = (columns <= positions[:, None]) & (columns >= padding[:, None, None])
        return torch.where(visible, 0.0, torch.finfo(dtype).min).to(dtype)[:, None]

    def forward(
        self, tokens: torch.Tensor, positions: torch.Tensor, padding: torch.Tensor, end: int, cache: KVCache
    ) -> torch.Tensor:
        """Logits (rows, vocab) of the last position.

        ``tokens`` is (rows, length) at ``positions`` (length,); ``padding`` is the number of padding tokens at the left
        of each row; keys and values are read up to ``end``.
        """
        if end > self.config.max_length:
            raise ValueError(f"{end} tokens, the cache holds {self.config.max_length}")
        x = self.embed(tokens)
        cos, sin = self.rotary(positions)
        rotary = (cos.to(x.dtype), sin.to(x.dtype))
        mask = self.attention_mask(positions, padding, end, x.dtype)
        for block in self.blocks:
            x = block(x, rotary, mask, positions, end, cache)
        return self.head(self.norm(x[:, -1]))


def build_chat_model(config: ModelConfig, device: torch.device, dtype: torch.dtype, seed: int) -> ChatModel:
    """A model with random weights, made on its device in its precision."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype)
    try:
        with torch.device(device):
            model = ChatModel(config)
    finally:
        torch.set_default_dtype(default)
    generator = torch.Generator(device).manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if not name.endswith("norm.weight"):
                parameter.normal_(std=config.dim**-0.5, generator=generator)
    return model.eval().requires_grad_(False)


def fingerprint(model: nn.Module) -> float:
    """One number that tells two sets of weights apart, for the log."""
    return sum(parameter.float().abs().mean().item() for parameter in model.parameters())
