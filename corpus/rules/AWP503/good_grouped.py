"""Grouped calls, a switch between both forms, masks."""

import torch
import torch.nn.functional as F
from torch import nn


def repeat_kv(x: torch.Tensor, n: int) -> torch.Tensor:
    b, h, s, d = x.shape
    return x[:, :, None].expand(b, h, n, s, d).reshape(b, h * n, s, d)


class Grouped(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


class Switch(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        kwargs = {"enable_gqa": True}
        if mask is not None:
            k, v = repeat_kv(k, 4), repeat_kv(v, 4)
            kwargs = {}
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **kwargs)


class Masked(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        k = repeat_kv(k, 4)
        v = repeat_kv(v, 4)
        return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
