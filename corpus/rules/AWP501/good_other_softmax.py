"""Softmax and matrix products that are no attention."""

import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.gate = nn.Linear(dim, num_experts)

    def forward(self, hidden_states: torch.Tensor, outputs: torch.Tensor) -> torch.Tensor:
        weights = F.softmax(self.gate(hidden_states), dim=-1)
        return (weights.unsqueeze(-1) * outputs).sum(1)


class Similarity(nn.Module):
    def forward(self, image: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        return (image @ text.t()).softmax(dim=-1)


class Pool(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.score = nn.Linear(dim, 1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        weights = torch.softmax(self.score(hidden_states), dim=1)
        return torch.sum(weights * hidden_states, dim=1)
