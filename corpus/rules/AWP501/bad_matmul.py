"""Plain attention: matmul, scale, optional mask, softmax, dropout, matmul."""

import math

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, num_heads: int):
        super().__init__()
        self.head_dim = dim // num_heads
        self.num_heads = num_heads
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor = None) -> torch.Tensor:
        batch, length, dim = hidden_states.shape
        q, k, v = self.qkv(hidden_states).view(batch, length, 3, self.num_heads, self.head_dim).permute(2, 0, 3, 1, 4)
        scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(self.head_dim)
        if attention_mask is not None:
            scores = scores + attention_mask
        weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)  # expect: AWP501
        weights = F.dropout(weights, p=0.1, training=self.training)
        context = torch.matmul(weights, v)
        return self.out(context.transpose(1, 2).reshape(batch, length, dim))
