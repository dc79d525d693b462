"""A table that the first call moves, in a module that nobody compiles: later calls find nothing to do."""

import torch
from torch import nn


class RotaryAttention(nn.Module):
    def __init__(self, dim: int, size: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)
        self.freqs_cis = torch.polar(torch.ones(size, dim), torch.outer(torch.arange(size), torch.arange(dim)).float())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = self.qkv(x).chunk(3, dim=-1)
        self.freqs_cis = self.freqs_cis.to(q.device)  # expect[low]: AWP403
        q = torch.view_as_real(torch.view_as_complex(q.reshape(*q.shape[:-1], -1, 2)) * self.freqs_cis).flatten(-2)
        return nn.functional.scaled_dot_product_attention(q, k, v)


class Encoder(nn.Module):
    def __init__(self, dim: int, size: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([RotaryAttention(dim, size) for _ in range(depth)])

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
