"""Fused kernels first, a setting, a reason, tests, math off."""

import torch
import torch.nn.functional as F
from torch.backends.cuda import sdp_kernel
from torch.nn.attention import SDPBackend, sdpa_kernel


class Attention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            return F.scaled_dot_product_attention(q, k, v)


class FlashAttention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(SDPBackend.FLASH_ATTENTION):
            return F.scaled_dot_product_attention(q, k, v)


class OldAttention(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdp_kernel(enable_flash=True, enable_math=False, enable_mem_efficient=True):
            return F.scaled_dot_product_attention(q, k, v)


class Configured(torch.nn.Module):
    def __init__(self, backends: list):
        super().__init__()
        self.backends = backends

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        with sdpa_kernel(self.backends):
            return F.scaled_dot_product_attention(q, k, v)


class Jacobian(torch.nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        # forward-mode derivatives are not supported by the fused kernels
        with sdpa_kernel(SDPBackend.MATH):  # expect[low]: AWP508
            return F.scaled_dot_product_attention(q, k, v)


def load(path: str, exact: bool) -> torch.nn.Module:
    torch.backends.cuda.enable_math_sdp(False)
    if exact:
        torch.backends.cuda.enable_flash_sdp(False)
        torch.backends.cuda.enable_mem_efficient_sdp(False)
    return torch.load(path)


def test_against_math(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    with sdpa_kernel(SDPBackend.MATH):
        expected = F.scaled_dot_product_attention(q, k, v)
    torch.testing.assert_close(F.scaled_dot_product_attention(q, k, v), expected)
