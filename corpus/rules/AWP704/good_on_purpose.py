"""Weights cast to float32 in a layer that is there to do so, by its name."""

import torch
import torch.nn.functional as F
from torch import nn


class Float32Linear(nn.Linear):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.linear(x.float(), self.weight.float(), self.bias)  # expect[low]: AWP704


class Mixer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.head = Float32Linear(dim, dim)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(x).to(x.dtype)


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Mixer(dim) for _ in range(depth)])

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
