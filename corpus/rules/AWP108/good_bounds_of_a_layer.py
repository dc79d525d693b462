"""Bounds that a layer changes for the next one."""

import torch
from torch import nn


class PruningLayer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        sizes = (bounds[1:] - bounds[:-1]).tolist()
        kept = [part[: max(size // 2, 1)] for part, size in zip(x.split(sizes), sizes)]
        return torch.cat(kept), bounds // 2


class Pruner(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([PruningLayer(dim) for _ in range(depth)])

    def forward(self, x: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x, bounds = layer(x, bounds)
        return x
