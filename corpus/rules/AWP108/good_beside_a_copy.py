"""A number read where the same statement has brought the layer's result to the host before."""

import torch
from torch import nn


class KeepingAttention(nn.Module):
    def __init__(self, inner: nn.Module):
        super().__init__()
        self.inner = inner
        self.kept: dict[int, torch.Tensor] = {}

    def forward(self, hidden_states: torch.Tensor, timestep: torch.Tensor) -> torch.Tensor:
        probabilities = self.inner(hidden_states)
        self.kept[timestep.item()] = probabilities.detach().cpu()
        return probabilities
