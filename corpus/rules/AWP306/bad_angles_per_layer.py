"""Cosines and sines of angles that every layer is given alike."""

import torch
import torch.nn.functional as F
from torch import nn


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()  # expect: AWP306
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


class TowerAttention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        query, key, value = self.qkv(x)[None].chunk(3, dim=-1)
        query, key = rotate(query, angles), rotate(key, angles)
        return F.scaled_dot_product_attention(query, key, value)[0]


class TowerLayer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.attention = TowerAttention(dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        return x + self.attention(x, bounds, angles)


class Tower(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([TowerLayer(dim) for _ in range(depth)])

    def forward(self, x: torch.Tensor, bounds: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, bounds, angles)
        return x
