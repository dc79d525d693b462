"""A switch beside the fused call; a method that weighs and multiplies nothing; a product that is no attention."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Switched(nn.Module):
    def __init__(self, dim: int, fused: bool = False):
        super().__init__()
        self.fused = fused
        self.dim = dim

    def apply_attention(self, values: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.softmax(scores, dim=-1), values)

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        if not self.fused:
            scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.dim)
            return self.apply_attention(v, scores)
        return F.scaled_dot_product_attention(q, k, v)


class Probabilities(nn.Module):
    def attend(self, scores: torch.Tensor) -> torch.Tensor:
        return torch.softmax(scores, dim=-1)

    def forward(self, q: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
        return self.attend(torch.matmul(q, k.transpose(-2, -1)))


class Pointer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proposal = nn.Parameter(torch.zeros(dim, dim))

    def weighted_sum(self, rows: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        return torch.matmul(torch.softmax(scores, dim=-1), rows)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.weighted_sum(x, torch.matmul(x, self.proposal))
