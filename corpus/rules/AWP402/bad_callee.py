"""A function compiled by a call, and its helper in the same file."""

import torch
from torch import nn


def clip(hidden_states: torch.Tensor) -> torch.Tensor:
    limit = hidden_states.abs().amax()
    while limit > 10:  # expect: AWP402
        hidden_states = hidden_states * 0.5
        limit = hidden_states.abs().amax()
    return hidden_states


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        hidden_states = clip(self.proj(hidden_states))
        rows = torch.nonzero(hidden_states.sum(-1))  # expect: AWP402
        return hidden_states[rows[0]]


class Model(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.block = Block(dim)
        self.block = torch.compile(self.block)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.block(hidden_states)


def build() -> nn.Module:
    block = Block(16)
    return torch.compile(block)
