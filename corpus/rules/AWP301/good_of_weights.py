"""Filters that are made of a layer's own few weights: small beside what the layer is given."""

import torch
from torch import nn


class Bands(nn.Module):
    def __init__(self, channels: int, rate: float):
        super().__init__()
        self.low = nn.Parameter(torch.zeros(channels, 1))
        self.width = nn.Parameter(torch.ones(channels, 1))
        self.rate = rate

    def filters(self) -> torch.Tensor:
        low = 50.0 / self.rate + torch.abs(self.low)
        high = torch.clamp(low + 50.0 / self.rate + torch.abs(self.width) * 2.0, 50.0, self.rate / 2)
        return (high - low) * torch.sigmoid(high * 0.5 + low)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return nn.functional.conv1d(x, self.filters()[:, None])


class Tower(nn.Module):
    def __init__(self, layers: int, channels: int):
        super().__init__()
        self.layers = nn.ModuleList(Bands(channels, 16000.0) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
