"""Mixture of experts, expert by expert."""

import torch
import torch.nn.functional as F
from torch import nn


class SparseBlock(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.num_experts = num_experts
        self.gate = nn.Linear(dim, num_experts)
        self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        weights, picked = F.softmax(self.gate(x), dim=-1).topk(2)
        out = torch.zeros_like(x)
        for expert_idx in picked.unique().tolist():  # expect: AWP204
            rows, slots = torch.where(picked == expert_idx)
            out.index_add_(0, rows, self.experts[expert_idx](x[rows]) * weights[rows, slots, None])
        return out


class DenseBlock(nn.Module):
    def __init__(self, dim: int, num_experts: int):
        super().__init__()
        self.w1 = nn.Parameter(torch.zeros(num_experts, dim, dim))

    def forward(self, x: torch.Tensor, expert_hit: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        out = torch.zeros_like(x)
        for expert_idx in expert_hit:  # expect: AWP204
            out = out + (x @ self.w1[expert_idx]) * mask[expert_idx]
        return out
