"""A cast of what an earlier statement cast: it gives back its argument, and copies nothing."""

import torch
from torch import nn


class Rotary(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.register_buffer("inverse", torch.arange(0, width, 2) / width)

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        positions = position_ids[:, None, :].float()
        angles = self.inverse[None, :, None].float() @ positions.float()  # expect[low]: AWP307
        return angles.cos()


class Tower(nn.Module):
    def __init__(self, layers: int, width: int):
        super().__init__()
        self.layers = nn.ModuleList(Rotary(width) for _ in range(layers))

    def forward(self, x: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x + layer(x, position_ids).sum()
        return x
