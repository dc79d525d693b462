"""Versions compared and signatures read in every layer of every step."""

import inspect

import torch
from packaging import version
from torch import nn

from library.utils import is_torch_version


class Attention(nn.Module):
    def __init__(self, processor=None):
        super().__init__()
        self.processor = processor

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        accepted = set(inspect.signature(self.processor).parameters)  # expect: AWP402
        options = {"scale": 1.0} if "scale" in accepted else {}
        if is_torch_version(">=", "2.5.0"):  # expect: AWP402
            options["enable_gqa"] = True
        if version.parse(torch.__version__) < version.parse("2.1"):  # expect: AWP402
            query = query.contiguous()
        return nn.functional.scaled_dot_product_attention(query, key, value, **options)


class Decoder(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Attention() for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, x: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            for layer in self.layers:
                x = layer(x, x, x)
        return x
