"""A copy of a part of what is written to in place, where no gradients flow."""

import torch
from torch import nn


class Polynomials(nn.Module):
    def __init__(self, degree: int):
        super().__init__()
        self.degree = degree

    @torch.inference_mode()
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        terms = torch.ones(*x.shape, self.degree + 1, device=x.device)
        terms[..., 1] = x
        for i in range(2, self.degree + 1):
            terms[..., i] = x * terms[..., i - 1].clone() - terms[..., i - 2]  # expect: AWP307
        return terms


class Model(nn.Module):
    def __init__(self, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Polynomials(4) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x).sum(-1)
        return x
