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
    """Keys and values of one layer; grows with every step."""

    def __init__(self) -> None:
        self.key: torch.Tensor | None = None
        self.value: torch.Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.key is None else self.key.shape[2]

    def append(self, key: torch.Tensor, value: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.key is not None and self.value is not None:
            key = torch.cat((self.key, key), dim=2)
            value = torch.cat((self.value, value), dim=2)
        self.key, self.value = key, value
        return key, value


class Attention(nn.Module):
    def __init__(self, config: ModelConfig, layer: int, store: AdapterStore) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = AdaptedLinear(f"layers.{layer}.qkv", config.dim, 3 * config.dim, store)
        self.out = AdaptedLinear(f"layers.{layer}.out", config.dim, config.dim, store)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cache: KVCache, names: Sequence[str]) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(x, names).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        key, value = cache.append(key, value)
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        return self.out(context.transpose(1, 2).reshape(rows, length, dim), names)


class Layer(nn.Module):
    def __init__(self, config: ModelConfig, layer: int, store: AdapterStore) -> None:
        super().__init__()
        self.norm1 = nn.RMSNorm(config.dim)
        self.attention = Attention(config, layer, store)
        self.norm2 = nn.RMSNorm(config.dim)
        self.gate_up = nn.Linear(config.dim, 2 * config.hidden, bias=False)
        self.down = nn.Linear(config.hidden, config.dim, bias=False)

    def forward(self, x: torch.Tensor, mask: torch.Tensor, cache: KVCache, names: Sequence[str]) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), mask, cache, names)
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

    def adapted(self) -> dict[str, tuple[int, int]]:
        """Inputs and outputs of the layers that take adapters, by name."""
        layers = (module for module in self.modules() if isinstance(module, AdaptedLinear))
        return {layer.name: (layer.base.in_features, layer.base.out_features) for layer in layers}

    def forward(
        self, tokens: torch.Tensor, padding: torch.Tensor, caches: Sequence[KVCache], names: Sequence[str]
    ) -> torch.Tensor:
        """Logits (rows, vocab) of what follows; ``padding`` (rows) is how many tokens on the left are none."""
        start, length = caches[0].length, tokens.shape[1]
        places = torch.arange(start, start + length, device=tokens.device)
        keys = torch.arange(start + length, device=tokens.device)
        mask = (keys[None, None] <= places[None, :, None]) & (keys[None, None] >= padding[:, None, None])
        mask |= places[None, :, None] == keys[None, None]  # a padded query may see itself: no row is empty
        x = self.embed(tokens) + self.position((places[None] - padding[:, None]).clamp(min=0))
        for layer, cache in zip(self.layers, caches):
            x = layer(x, mask[:, None], cache, names)
        return self.head(self.norm(x[:, -1]))
