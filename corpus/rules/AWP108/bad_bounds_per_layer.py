"""Bounds that every layer of a tower is given alike, read in every one."""

import torch
import torch.nn.functional as F
from torch import nn


class TowerAttention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x).chunk(3, dim=-1)
        sizes = (bounds[1:] - bounds[:-1]).tolist()  # expect: AWP108
        parts = zip(query.split(sizes), key.split(sizes), value.split(sizes))
        return torch.cat([F.scaled_dot_product_attention(q[None], k[None], v[None])[0] for q, k, v in parts])


class TowerLayer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.attention = TowerAttention(dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        return x + self.attention(x, bounds)


class Tower(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([TowerLayer(dim) for _ in range(depth)])

    def forward(self, x: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        bounds = F.pad((grid[:, 0] * grid[:, 1]).cumsum(0), (1, 0))
        for layer in self.layers:
            x = layer(x, bounds)
        return x
