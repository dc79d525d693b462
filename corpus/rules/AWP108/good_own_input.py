"""A layer's own input, bound anew from itself: each layer gets another."""

import torch
from torch import nn


class Colours(nn.Module):
    def __init__(self, table: dict):
        super().__init__()
        self.table = table

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = x.argmax(dim=-1)
        found = [self.table[number] for number in x.tolist()]
        return torch.tensor(found, device=x.device)


class Tower(nn.Module):
    def __init__(self, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Colours({}) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
