"""A class of its own for an activation, which nothing here runs in a layer: for old versions, or by its name."""

import torch
from torch import nn


class Swish(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * torch.sigmoid(x)  # expect[low]: AWP303


ACTIVATIONS = {"relu": nn.ReLU, "swish": getattr(nn, "SiLU", Swish)}
