"""Rows of a batch that ask for different adapters, one small product after the other."""

import torch
from torch import nn


class AdaptedLinear(nn.Module):
    def __init__(self, dim: int, down: dict, up: dict):
        super().__init__()
        self.base = nn.Linear(dim, dim)
        self.down = down
        self.up = up

    def forward(self, x: torch.Tensor, names: list[str]) -> torch.Tensor:
        result = self.base(x)
        for name in sorted(set(names)):  # expect: AWP204
            rows = torch.tensor([row for row, other in enumerate(names) if other == name], device=x.device)
            result[rows] += (x[rows] @ self.down[name]) @ self.up[name]
        return result
