"""Lengths, statistics of other tensors, constants: nothing that a normalisation call computes."""

import math

import torch
from torch import nn


class Heads(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("running_mean", torch.zeros(dim))
        self.register_buffer("running_var", torch.ones(dim))
        self.register_buffer("mean", torch.tensor([0.48, 0.45, 0.40]).view(1, 3, 1, 1))
        self.register_buffer("std", torch.tensor([0.26, 0.26, 0.27]).view(1, 3, 1, 1))
        self.scale = 1 / math.sqrt(dim)

    def forward(self, query: torch.Tensor, key: torch.Tensor, pixel_values: torch.Tensor) -> torch.Tensor:
        query = query * torch.rsqrt((query * query).sum(dim=-1, keepdim=True) + 1e-6)
        key = key / key.norm(dim=-1, keepdim=True)
        scores = query @ key.transpose(-1, -2) / math.sqrt(query.shape[-1])
        frozen = (key - self.running_mean) * torch.rsqrt(self.running_var + 1e-5)
        image = (pixel_values - self.mean) / self.std
        style = query * torch.rsqrt(key.pow(2).mean(-1, keepdim=True) + 1e-6)
        weights = key * key.var(dim=0, keepdim=True).rsqrt()
        return scores.mean() + frozen.mean() + image.mean() + style.mean() + weights.mean() * self.scale
