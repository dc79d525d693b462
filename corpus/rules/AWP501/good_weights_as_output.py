"""A pointer network: the weights are the result, there are no values."""

import torch
import torch.nn.functional as F
from torch import nn


class Pointer(nn.Module):
    def forward(self, query: torch.Tensor, keys: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(query, keys.transpose(-2, -1))
        return F.softmax(scores, dim=-1)


class Gated(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.gate = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        probs = torch.softmax(hidden_states, dim=-1)
        return probs @ weight
