"""Angles that a layer works out itself, and cosines that are taken above the layers."""

import torch
from torch import nn


def turn(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    return x * angles.cos() + x.flip(-1) * angles.sin()


class PhaseLayer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.phase = nn.Linear(dim, dim)

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        return turn(x * cos + x * sin, self.phase(x))


class Phases(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([PhaseLayer(dim) for _ in range(depth)])

    def forward(self, x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        cos, sin = angles.cos(), angles.sin()
        for layer in self.layers:
            x = layer(x, cos, sin)
        return x
