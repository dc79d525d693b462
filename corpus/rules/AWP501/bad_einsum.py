"""einsum and baddbmm spellings."""

import torch
from torch import nn


class Einsum(nn.Module):
    def __init__(self, dim_head: int):
        super().__init__()
        self.scale = dim_head**-0.5

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        sim = torch.einsum("b h i d, b h j d -> b h i j", q, k) * self.scale
        sim = sim + mask
        attn = sim.softmax(dim=-1)  # expect: AWP501
        return torch.einsum("b h i j, b h j d -> b h i d", attn, v)


class WithBias(nn.Module):
    def __init__(self, norm_factor: float):
        super().__init__()
        self.norm_factor = norm_factor

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, alibi: torch.Tensor) -> torch.Tensor:
        scores = torch.baddbmm(alibi, q, k.transpose(-1, -2), beta=1.0, alpha=self.norm_factor)
        weights = torch.softmax(scores, dim=-1)  # expect: AWP501
        return torch.bmm(weights, v)
