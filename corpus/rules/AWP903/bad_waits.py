"""A collective in front of work that does not need it."""

import torch
import torch.distributed as dist
from torch import nn


class MoE(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.routed = nn.Linear(dim, dim)
        self.shared = nn.Linear(dim, dim)
        self.gate = nn.Linear(dim, 1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        routed = self.routed(hidden_states)
        dist.all_reduce(routed)  # expect: AWP903
        shared = self.shared(hidden_states)
        shared = torch.sigmoid(self.gate(hidden_states)) * shared
        return routed + shared


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(dim, dim))

    def forward(self, hidden_states: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        dist.all_reduce(scores, op=dist.ReduceOp.MAX)  # expect: AWP903
        values = hidden_states @ self.weight
        return scores @ values
