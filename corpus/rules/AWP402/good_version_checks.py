"""Versions compared once, in training, and questions that have another answer each time."""

import inspect

import torch
from packaging import version
from torch import nn

from library.utils import is_torch_version, is_version

HAS_GQA = is_torch_version(">=", "2.5.0")
OLD = version.parse(torch.__version__) < version.parse("2.1")


class Attention(nn.Module):
    def __init__(self, processor=None):
        super().__init__()
        self.accepted = set(inspect.signature(processor).parameters)
        self.old = is_torch_version("<", "2.1.0")

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, kind: int) -> torch.Tensor:
        options = {"enable_gqa": True} if HAS_GQA else {}
        if self.old or OLD or is_version(kind):
            query = query.contiguous()
        if self.training and is_torch_version(">=", "1.11.0"):
            query = torch.utils.checkpoint.checkpoint(query.relu, use_reentrant=False)
        return nn.functional.scaled_dot_product_attention(query, key, value, **options)


class Decoder(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, x: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            for layer in self.layers:
                x = layer(x, x, x, 1)
        return x
