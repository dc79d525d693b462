"""The base model: a decoder whose attention projections take adapters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from loraserve.adapters import AdaptedLinear, AdapterStore


@dataclass(frozen=True)
class ModelConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    hidden: int
    rank: int
    max_length: int


SIZES = {
    "cpu": ModelConfig(vocab_size=256, dim=96, layers=3, heads=4, hidden=192, rank=4, max_length=256),
    "gpu": ModelConfig(vocab_size=32_000, dim=2048, layers=16, heads=16, hidden=5632, rank=16, max_length=1024),
}


class KVCache:
    """Keys and values (rows, heads, max_length, head_dim) of one layer, made once and written in place."""

    def __init__(self, config: ModelConfig, rows: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (rows, config.heads, config.max_length, config.dim // config.heads)
        self.key = torch.zeros(shape, device=device, dtype=dtype)
        self.value = torch.zeros(shape, device=device, dtype=dtype)

    def update(
        self, key: torch.Tensor, value: torch.Tensor, places: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        self.key.index_copy_(2, places, key)
        self.value.index_copy_(2, places, value)
        return self.key[:, :, :end], self.value[:, :, :end]


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int, store: AdapterStore) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = AdaptedLinear(f"layers.{layer}.qkv", config.dim, 3 * config.dim, store)
        self.out = AdaptedLinear(f"layers.{layer}.out", config.dim, config.dim, store)

    def forward(
        self, x: torch.Tensor, places: torch.Tensor, mask: torch.Tensor, cache: KVCache, numbers: torch.Tensor
    ) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(x, numbers).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        key, value = cache.update(key, value, places, mask.shape[-1])
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(context.transpose(1, 2).reshape(rows, length, dim), numbers)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, layer: int, store: AdapterStore) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config, layer, store)
        self.norm2 = nn.RMSNorm(config.dim)
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(
        self, x: torch.Tensor, places: torch.Tensor, mask: torch.Tensor, cache: KVCache, numbers: torch.Tensor
    ) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), places, mask, cache, numbers)
        gate, up = self.gate_up(self.norm2(x)).chunk(2, dim=-1)
        return x + self.down(F.silu(gate) * up)


class BaseModel(nn.Module):
    def __init__(self, config: ModelConfig, store: AdapterStore) -> None:
        super().__init__()
        self.config = config
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.position = nn.Embedding(config.max_length, config.dim)
        self.layers = nn.ModuleList(Layer(config, number, store) for number in range(config.layers))
        self.norm = nn.RMSNorm(config.dim)
        self.head = nn.Linear(config.dim, config.vocab_size, bias=False)
        self.register_buffer("columns", torch.arange(config.max_length), persistent=False)

    def adapted(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the layers that take adapters, by name."""
        layers = (module for module in self.modules() if isinstance(module, AdaptedLinear))
        return {layer.name: (layer.base.in_features, layer.base.out_features) for layer in layers}

    def forward(
        self,
        tokens: torch.Tensor,
        places: torch.Tensor,
        padding: torch.Tensor,
        numbers: torch.Tensor,
        caches: Sequence[KVCache],
        end: int,
    ) -> torch.Tensor:
        """Logits (rows, vocab) of what follows tokens (rows, length) at ``places`` (length,); ``padding`` (rows) is how
        many tokens on the left are none, ``numbers`` (rows) the adapters; caches are read up to ``end``."""
        keys = self.columns[:end]
        mask = (keys[None, None] <= places[None, :, None]) & (keys[None, None] >= padding[:, None, None])
        mask |= places[None, :, None] == keys[None, None]  # a padded query may see itself: no row is empty
        x = self.embed(tokens) + self.position((places[None] - padding[:, None]).clamp(min=0))
        for layer, cache in zip(self.layers, caches):
            x = layer(x, places, mask[:, None], cache, numbers)
        return self.head(self.norm(x[:, -1]))
