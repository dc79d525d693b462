"""A helper of what works out a table's parameters when the model is built."""

import torch
from torch import nn


def _compute_yarn_parameters(dim: int, low: float, high: float, device: str) -> torch.Tensor:
    def ramp(size: int) -> torch.Tensor:
        return torch.clamp((torch.arange(size) - low) / (high - low), 0, 1)

    return 1.0 - ramp(dim).to(device)


INIT = {"yarn": _compute_yarn_parameters}


class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.dim = dim
        self.init = INIT["yarn"]

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * _compute_yarn_parameters(self.dim, 0.1, 0.9, x.device)


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Rope(dim) for _ in range(depth)])

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
