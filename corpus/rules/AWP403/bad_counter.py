"""A module that counts its calls in compiled code."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.calls = 0

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        self.calls += 1  # expect: AWP403
        return self.proj(hidden_states)


def build() -> nn.Module:
    encoder = Encoder(32).eval()
    return torch.compile(encoder)
