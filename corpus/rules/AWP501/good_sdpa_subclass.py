"""The eager class of a family that has a fused one; training reference code."""

import torch
from torch import nn


class ToyAttention(nn.Module):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = torch.matmul(q, k.transpose(-1, -2))
        return torch.matmul(nn.functional.softmax(scores, dim=-1), v)


class ToySdpaAttention(ToyAttention):
    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, scale=1.0)


def test_against_reference(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> None:
    expected = torch.softmax(q @ k.transpose(-2, -1), dim=-1) @ v
    assert torch.allclose(expected, ToySdpaAttention()(q, k, v))
