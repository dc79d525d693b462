"""Checks that transformers hands to compilers as constants, and one beside the building of a mask."""

import torch
from torch import nn
from transformers.utils import is_torch_greater_or_equal

from library.utils import is_torch_version


class Scan(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.mask = None

    def _build_mask(self, x: torch.Tensor) -> torch.Tensor:
        if is_torch_version(">=", "2.9.0"):
            return torch.ones(x.shape[1], x.shape[1], device=x.device).tril()
        return torch.ones(x.shape[1], x.shape[1], device=x.device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.mask is None:
            fused = is_torch_version(">=", "2.5.0")
            self.mask = self._build_mask(x) if fused else x
        if is_torch_greater_or_equal("2.9.0"):
            x = x.contiguous()
        return self.proj(x)


class Decoder(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Scan(dim) for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, x: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            for layer in self.layers:
                x = layer(x)
        return x
