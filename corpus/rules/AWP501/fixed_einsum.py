"""einsum and baddbmm spellings."""

import torch
from torch import nn


class Einsum(nn.Module):
    def __init__(self, dim_head: int):
        super().__init__()
        self.scale = dim_head**-0.5

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask, scale=self.scale)


class WithBias(nn.Module):
    def __init__(self, norm_factor: float):
        super().__init__()
        self.norm_factor = norm_factor

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, alibi: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=alibi, scale=self.norm_factor)
