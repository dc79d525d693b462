"""What callers make once above the layers and hand in; what is left for those who do not runs nowhere."""

import torch
from torch import nn


def longest(bounds: torch.Tensor, kwargs: dict | None = None) -> int:
    if kwargs is not None and (known := kwargs.pop("longest", None)) is not None:
        return known
    return (bounds[1:] - bounds[:-1]).max().item()


class VisionAttention(nn.Module):
    def forward(self, hidden_states: torch.Tensor, bounds: torch.Tensor, **kwargs) -> torch.Tensor:
        return hidden_states[: longest(bounds, kwargs)]


class VisionModel(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList(VisionAttention() for _ in range(depth))

    def forward(self, hidden_states: torch.Tensor, bounds: torch.Tensor) -> torch.Tensor:
        known = longest(bounds)
        for layer in self.layers:
            hidden_states = layer(hidden_states, bounds, longest=known)
        return hidden_states
