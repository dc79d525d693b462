"""A model definition that may be trained somewhere: shown at low confidence."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, channels: int):
        super().__init__()
        self.conv = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.bn = nn.BatchNorm2d(channels)
        self.first = nn.BatchNorm2d(channels)
        self.norm = nn.GroupNorm(8, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.first(x)
        x = self.conv(x)
        x = self.bn(x)  # expect[low]: AWP308
        return self.norm(self.conv(x))
