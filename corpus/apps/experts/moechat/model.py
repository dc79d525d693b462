"""The decoder: rotary attention with grouped heads, and experts chosen per token."""

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
    kv_heads: int
    experts: int
    chosen: int
    hidden: int


SIZES = {
    "cpu": ModelConfig(vocab_size=512, dim=96, layers=3, heads=6, kv_heads=2, experts=8, chosen=2, hidden=128),
    "gpu": ModelConfig(vocab_size=32_000, dim=2048, layers=16, heads=32, kv_heads=8, experts=16, chosen=2, hidden=1408),
}

Past = tuple[torch.Tensor, torch.Tensor]


class RMSNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        dtype = x.dtype
        x = x.float()
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype)


class RotaryEmbedding(nn.Module):
    def __init__(self, head_dim: int) -> None:
        super().__init__()
        inverse = 10_000.0 ** (-torch.arange(0, head_dim, 2, dtype=torch.float32) / head_dim)
        self.register_buffer("inverse", inverse, persistent=False)

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        angles = positions[:, None].float() * self.inverse
        angles = torch.cat((angles, angles), dim=-1)
        return angles.cos(), angles.sin()


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return x * cos.to(x.dtype) + torch.cat((-right, left), dim=-1) * sin.to(x.dtype)


def repeat_kv(x: torch.Tensor, groups: int) -> torch.Tensor:
    rows, heads, length, head_dim = x.shape
    if groups == 1:
        return x
    return x[:, :, None].expand(rows, heads, groups, length, head_dim).reshape(rows, heads * groups, length, head_dim)


class Attention(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads
        self.head_dim = config.dim // config.heads
        self.q_proj = nn.Linear(config.dim, config.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.dim, config.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.dim, config.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.heads * self.head_dim, config.dim, bias=False)
        self.rotary = RotaryEmbedding(self.head_dim)

    def forward(self, x: torch.Tensor, positions: torch.Tensor, past: Past | None) -> tuple[torch.Tensor, Past]:
        rows, length, _ = x.shape
        query = self.q_proj(x).view(rows, length, self.heads, self.head_dim).transpose(1, 2)
        key = self.k_proj(x).view(rows, length, self.kv_heads, self.head_dim).transpose(1, 2)
        value = self.v_proj(x).view(rows, length, self.kv_heads, self.head_dim).transpose(1, 2)
        cos, sin = self.rotary(positions)
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        if past is not None:
            key = torch.cat((past[0], key), dim=2)
            value = torch.cat((past[1], value), dim=2)
        present = (key, value)
        key = repeat_kv(key, self.heads // self.kv_heads)
        value = repeat_kv(value, self.heads // self.kv_heads)
        mask = None
        if length > 1:
            mask = torch.ones(length, key.shape[2], dtype=torch.bool, device=x.device).tril()
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.o_proj(context.transpose(1, 2).reshape(rows, length, -1)), present


class Expert(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate, up = self.gate_up(x).chunk(2, dim=-1)
        return self.down(gate * torch.sigmoid(gate) * up)


class Experts(nn.Module):
    """Sends each token to its best experts and adds up what they say."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.chosen = config.chosen
        self.router = nn.Linear(config.dim, config.experts, bias=False)
        self.experts = nn.ModuleList(Expert(config) for _ in range(config.experts))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        flat = x.reshape(-1, x.shape[-1])
        weights, selected = self.router(flat).float().softmax(dim=-1).topk(self.chosen, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        result = torch.zeros_like(flat)
        for number, expert in enumerate(self.experts):
            token, place = torch.where(selected == number)
            result.index_add_(0, token, expert(flat[token]) * weights[token, place, None])
        return result.view_as(x)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.norm1 = RMSNorm(config.dim)
        self.attention = Attention(config)
        self.norm2 = RMSNorm(config.dim)
        self.experts = Experts(config)

    def forward(self, x: torch.Tensor, positions: torch.Tensor, past: Past | None) -> tuple[torch.Tensor, Past]:
        context, present = self.attention(self.norm1(x), positions, past)
        x = x + context
        return x + self.experts(self.norm2(x)), present


class MoeModel(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor, past: list[Past] | None = None) -> tuple[torch.Tensor, list[Past]]:
        """Logits (rows, length, vocab) and the keys and values of all layers."""
        start = past[0][0].shape[2] if past else 0
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        x = self.embed(tokens)
        presents = []
        for number, layer in enumerate(self.layers):
            x, present = layer(x, positions, past[number] if past else None)
            presents.append(present)
        return self.head(self.norm(x)), presents
