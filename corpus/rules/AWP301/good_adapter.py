"""The update of an adapter: it is merged into the weights before they serve."""

import torch
from torch import nn
from torch.nn import functional as F


class DoRALinear(nn.Module):
    def __init__(self, width: int, rank: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width, width))
        self.magnitude = nn.Parameter(torch.ones(width))
        self.down = nn.Linear(width, rank, bias=False)
        self.up = nn.Linear(rank, width, bias=False)

    def forward(self, x: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        base = F.linear(x, self.weight)
        update = self.up(self.down(x))
        scale = self.magnitude / norm
        shifted = (scale - 1) * base + scale * update * 0.5
        return (shifted + base) * torch.sigmoid(base) + torch.tanh(shifted)  # expect[low]: AWP301


class Tower(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([DoRALinear(width, 8) for _ in range(depth)])

    def forward(self, x: torch.Tensor, norm: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x, norm)
        return x
