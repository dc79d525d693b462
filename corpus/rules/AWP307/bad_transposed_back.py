"""Columns filled through a transposed, flattened copy that is transposed back."""

import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self, width: int, columns: torch.Tensor):
        super().__init__()
        self.width = width
        self.register_buffer("columns", columns)

    def pad(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(0, 1)  # expect: AWP307
        result = x.new_zeros((*x.shape[:-1], self.width))
        result = result.view(-1, self.width)
        result = result.index_copy(1, self.columns, x.reshape(-1, x.shape[-1]))
        return result.view((*x.shape[:-1], self.width)).transpose(0, 1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.pad(x) * 0.5


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Padded(width, torch.arange(8)) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
