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


class Cache:
    """Keys and values of all layers, made once for ``length`` tokens of one conversation, written in place."""

    def __init__(self, config: ModelConfig, length: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.layers, 1, config.kv_heads, length, config.dim // config.heads)
        self.keys = torch.zeros(shape, device=device, dtype=dtype)
        self.values = torch.zeros(shape, device=device, dtype=dtype)
        self.places = torch.arange(length, device=device)

    def update(
        self, layer: int, key: torch.Tensor, value: torch.Tensor, positions: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.keys[layer].index_copy_(2, positions, key)
        self.values[layer].index_copy_(2, positions, value)
        return self.keys[layer, :, :, :end], self.values[layer, :, :, :end]


class RMSNorm(nn.Module):
    def __init__(self, dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.rms_norm(x, self.weight.shape, self.weight, 1e-6)


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


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.layer = layer
        self.heads = config.heads
        self.kv_heads = config.kv_heads
        self.head_dim = config.dim // config.heads
        self.q_proj = nn.Linear(config.dim, config.heads * self.head_dim, bias=False)
        self.k_proj = nn.Linear(config.dim, config.kv_heads * self.head_dim, bias=False)
        self.v_proj = nn.Linear(config.dim, config.kv_heads * self.head_dim, bias=False)
        self.o_proj = nn.Linear(config.heads * self.head_dim, config.dim, bias=False)
        self.qkv: torch.Tensor | None = None  # the three in one, made with the first call

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:
        rows, length, _ = x.shape
        if self.qkv is None:
            self.qkv = torch.cat((self.q_proj.weight, self.k_proj.weight, self.v_proj.weight))
        parts = F.linear(x, self.qkv).view(rows, length, -1, self.head_dim).transpose(1, 2)
        query, key, value = parts.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        query, key = rotate(query, *rotary), rotate(key, *rotary)
        key, value = cache.update(self.layer, key, value, positions, mask.shape[1])
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
        return self.o_proj(context.transpose(1, 2).reshape(rows, length, -1))


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
        self.gate_up: torch.Tensor | None = None  # (experts, 2 * hidden, dim), made with the first call
        self.down: torch.Tensor | None = None

    def stack(self) -> tuple[torch.Tensor, torch.Tensor]:
        """The weights of all experts side by side; the single ones are given up."""
        if self.gate_up is None or self.down is None:
            self.gate_up = torch.stack([expert.gate_up.weight for expert in self.experts])
            self.down = torch.stack([expert.down.weight for expert in self.experts])
            self.experts = nn.ModuleList()
        return self.gate_up, self.down

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        gate_up, down = self.stack()
        flat = x.reshape(-1, x.shape[-1])
        weights, selected = self.router(flat).float().softmax(dim=-1).topk(self.chosen, dim=-1)
        weights = (weights / weights.sum(dim=-1, keepdim=True)).to(x.dtype)
        if len(flat) == 1:  # a step: the chosen experts' weights, and nothing that waits
            gate, up = (gate_up[selected[0]] @ flat[0]).chunk(2, dim=-1)
            said = (down[selected[0]] @ (F.silu(gate) * up)[..., None])[..., 0]
            return (said * weights[0, :, None]).sum(dim=0).view_as(x)
        share = torch.zeros(len(flat), len(gate_up), device=x.device, dtype=x.dtype).scatter_(1, selected, weights)
        gate, up = torch.einsum("td,ehd->teh", flat, gate_up).chunk(2, dim=-1)  # a prompt: all experts, in one product
        said = torch.einsum("teh,edh->ted", F.silu(gate) * up, down)
        return (said * share[..., None]).sum(dim=1).view_as(x)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, layer: int) -> None:
        super().__init__()
        self.norm1 = RMSNorm(config.dim)
        self.attention = Attention(config, layer)
        self.norm2 = RMSNorm(config.dim)
        self.experts = Experts(config)

    def forward(
        self,
        x: torch.Tensor,
        positions: torch.Tensor,
        rotary: tuple[torch.Tensor, torch.Tensor],
        mask: torch.Tensor,
        cache: Cache,
    ) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), positions, rotary, mask, cache)
        return x + self.experts(self.norm2(x))


class MoeModel(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.layers = nn.ModuleList(Layer(config, number) for number in range(config.layers))
        self.rotary = RotaryEmbedding(config.dim // config.heads)
        self.norm = RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, tokens: torch.Tensor, positions: torch.Tensor, cache: Cache, end: int) -> torch.Tensor:
        """Logits (rows, vocab) of what follows tokens (rows, length) at ``positions`` (length,).

        The cache is read up to ``end``.
        """
        x = self.embed(tokens)
        rotary = self.rotary(positions)
        mask = cache.places[:end] <= positions[:, None]
        for layer in self.layers:
            x = layer(x, positions, rotary, mask, cache)
        return self.head(self.norm(x[:, -1]))
