"""`@`, a boolean mask that fills, everything in one return."""

import torch
from torch import nn


class Causal(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.scale = dim**-0.5

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        causal = torch.ones(q.shape[-2], k.shape[-2], dtype=torch.bool, device=q.device).tril()
        attn = (q @ k.transpose(-2, -1)) * self.scale
        attn = attn.masked_fill(~causal, float("-inf"))
        attn = attn.softmax(dim=-1)  # expect: AWP501
        return attn @ v


class Plain(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return torch.softmax(q @ k.mT, dim=-1) @ v  # expect: AWP501
