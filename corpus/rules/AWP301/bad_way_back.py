"""The way back through an invertible layer, which sampling takes in every layer."""

import torch
from torch import nn


class Spline(nn.Module):
    def forward(
        self, x: torch.Tensor, width: torch.Tensor, height: torch.Tensor, slope: torch.Tensor, reverse: bool = False
    ) -> tuple[torch.Tensor, torch.Tensor]:
        if reverse:
            theta = (x - width) / height
            rest = theta * (1 - theta)
            numerator = height * (slope * theta.pow(2) + slope * rest)
            denominator = slope + rest * width
            outputs = width + numerator / denominator
            log_abs_det = torch.log(numerator) - 2 * torch.log(denominator)  # expect: AWP301
            return outputs, log_abs_det
        return x * slope, torch.log(slope)


class Flow(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Spline() for _ in range(depth)])

    def forward(
        self, x: torch.Tensor, width: torch.Tensor, height: torch.Tensor, slope: torch.Tensor, reverse: bool = False
    ) -> torch.Tensor:
        for layer in self.layers:
            x, _ = layer(x, width, height, slope, reverse=reverse)
        return x
