"""nn.MultiheadAttention computes weights that nobody takes."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int, heads: int):
        super().__init__()
        self.attn = nn.MultiheadAttention(dim, heads, batch_first=True)
        self.cross = nn.MultiheadAttention(dim, heads)
        self.norm = nn.LayerNorm(dim)

    def forward(self, x: torch.Tensor, memory: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        y = self.norm(x)
        out, _ = self.attn(y, y, y, attn_mask=mask, need_weights=False)
        x = x + out
        return x + self.cross(x, memory, memory, need_weights=False)[0]
