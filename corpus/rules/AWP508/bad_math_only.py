"""Attention confined to its math backend."""

import torch
import torch.nn.functional as F
from torch.backends.cuda import sdp_kernel
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.MATH):  # expect: AWP508
            return F.scaled_dot_product_attention(q, k, v)


class ListedAttention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with torch.nn.attention.sdpa_kernel([torch.nn.attention.SDPBackend.MATH]):  # expect: AWP508
            return F.scaled_dot_product_attention(q, k, v, is_causal=True)


class OldAttention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdp_kernel(enable_flash=False, enable_math=True, enable_mem_efficient=False):  # expect: AWP508
            return F.scaled_dot_product_attention(q, k, v)


def load(path: str) -> torch.nn.Module:
    torch.backends.cuda.enable_flash_sdp(False)  # expect: AWP508
    torch.backends.cuda.enable_mem_efficient_sdp(False)
    return torch.load(path)
