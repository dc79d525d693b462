"""Causal masks built at every call."""

import torch
import torch.nn.functional as F
from torch import nn


class Attention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        n = q.shape[-2]
        mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()  # expect: AWP504
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)


class Upper(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        length = q.size(2)
        mask = torch.triu(torch.full((length, length), float("-inf"), device=q.device), diagonal=1)  # expect: AWP504
        return F.scaled_dot_product_attention(q, k, v, mask)
