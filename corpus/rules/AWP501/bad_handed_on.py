"""The scores are made here; softmax and the product with the values stand in a method that subclasses share."""

import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.heads = heads
        self.width = dim // heads
        self.inward = nn.Linear(dim, 3 * dim)
        self.outward = nn.Linear(dim, dim)
        self.dropout = nn.Dropout(0.1)

    def cut(self, x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        parts = self.inward(x).view(x.size(0), -1, 3, self.heads, self.width)
        return parts.permute(2, 0, 3, 1, 4).unbind(0)

    def apply_attention(self, values: torch.Tensor, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if mask is not None:
            hidden = mask.unsqueeze(1).eq(0)
            scores = scores.masked_fill(hidden, float("-inf"))
            weights = torch.softmax(scores, dim=-1).masked_fill(hidden, 0.0)
        else:
            weights = torch.softmax(scores, dim=-1)
        mixed = torch.matmul(self.dropout(weights), values)
        return self.outward(mixed.transpose(1, 2).flatten(2))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.cut(x)
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.width)
        return self.apply_attention(v, scores, mask)  # expect: AWP501


class Biased(Attention):
    """The same with a bias of positions, which the fused call takes as its mask."""

    def __init__(self, dim: int, heads: int):
        super().__init__(dim, heads)
        self.bias = nn.Parameter(torch.zeros(heads, 64, 64))

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        q, k, v = self.cut(x)
        scores = (q @ k.transpose(-2, -1) + self.bias) * self.width**-0.5
        return self.apply_attention(v, scores, mask)  # expect: AWP501
