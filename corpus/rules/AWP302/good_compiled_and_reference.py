"""A compiled norm, a plain twin of a kernel, one that a hub kernel replaces, host arrays and a test helper."""

import numpy as np
import torch
from kernels import use_kernel_forward_from_hub
from torch import nn


@torch.compile
def rms_norm(x: torch.Tensor, weight: torch.Tensor, eps: float) -> torch.Tensor:
    return weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps))


class Norm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward_native(self, x: torch.Tensor) -> torch.Tensor:
        return self.weight * (x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6))  # expect[low]: AWP302


@use_kernel_forward_from_hub("RMSNorm")
class HubNorm(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(dim))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        return self.weight * (hidden_states * torch.rsqrt(variance + 1e-6))  # expect[low]: AWP302


def prepare(features: np.ndarray) -> np.ndarray:
    return (features - features.mean(-1, keepdims=True)) / (features.std(-1, keepdims=True) + 1e-6)


def test_norm():
    x = torch.randn(2, 4, device="cuda")
    want = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    assert torch.allclose(rms_norm(x, torch.ones(4, device="cuda"), 1e-6), want)
