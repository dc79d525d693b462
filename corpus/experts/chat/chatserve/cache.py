"""The key-value cache: one buffer for all layers, written in place."""

from __future__ import annotations

import torch

from chatserve.config import ModelConfig


class KVCache:
    """Keys and values of ``rows`` sequences, shape (layers, rows, kv_heads, max_length, head_dim)."""

    def __init__(self, config: ModelConfig, rows: int, device: torch.device, dtype: torch.dtype) -> None:
        shape = (config.layers, rows, config.kv_heads, config.max_length, config.head_dim)
        self.keys = torch.zeros(shape, dtype=dtype, device=device)
        self.values = torch.zeros(shape, dtype=dtype, device=device)

    def update(
        self, layer: int, key: torch.Tensor, value: torch.Tensor, positions: torch.Tensor, end: int
    ) -> tuple[torch.Tensor, torch.Tensor]:
        """Store the keys and values of new positions and return what is stored up to ``end``."""
        rows = key.shape[0]
        keys = self.keys[layer, :rows]
        values = self.values[layer, :rows]
        keys.index_copy_(2, positions, key)
        values.index_copy_(2, positions, value)
        return keys[:, :, :end], values[:, :, :end]
