"""The language model: grouped heads, rotary positions, no cache, since nothing is generated."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from visionprefill.config import TextConfig


class Rotary(nn.Module):
    """Tables of cosines and sines (max_length, head_dim / 2), made once."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        half = config.dim // config.heads // 2
        inverse = 10_000.0 ** (-torch.arange(half, dtype=torch.float32) / half)
        angles = torch.arange(config.max_length, dtype=torch.float32)[:, None] * inverse
        self.register_buffer("cos", angles.cos(), persistent=False)
        self.register_buffer("sin", angles.sin(), persistent=False)

    def forward(self, positions: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        return self.cos[positions][:, None], self.sin[positions][:, None]


def turn(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


class Attention(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.kv_heads = config.kv_heads
        self.head_dim = config.dim // config.heads
        self.qkv = nn.Linear(config.dim, (config.heads + 2 * config.kv_heads) * self.head_dim, bias=False)
        self.out = nn.Linear(config.dim, config.dim, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        rows, length, _ = x.shape
        qkv = self.qkv(x).view(rows, length, -1, self.head_dim).transpose(1, 2)
        query, key, value = qkv.split((self.heads, self.kv_heads, self.kv_heads), dim=1)
        query, key = turn(query, cos, sin), turn(key, cos, sin)
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, enable_gqa=True)
        return self.out(context.transpose(1, 2).reshape(rows, length, -1))


class Layer(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config)
        self.norm2 = nn.RMSNorm(config.dim)
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), mask, cos, sin)
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class LanguageModel(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.rotary = Rotary(config)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.norm = nn.RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)

    def forward(self, x: torch.Tensor, padding: torch.Tensor) -> torch.Tensor:
        """Logits (rows, vocab) at the last position of embeddings (rows, length, dim), padded on the left."""
        length = x.shape[1]
        places = torch.arange(length, device=x.device)
        cos, sin = self.rotary((places - padding[:, None]).clamp(min=0))
        mask = (places[None, :] <= places[:, None]) & (places >= padding[:, None])[:, None, :]
        mask = (mask | torch.eye(length, dtype=torch.bool, device=x.device))[:, None]
        for layer in self.layers:
            x = layer(x, mask, cos, sin)
        return self.head(self.norm(x[:, -1])).float()
