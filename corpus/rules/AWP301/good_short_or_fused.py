"""Short chains, compiled chains, reductions and matrix products in between, scalars, once a request."""

import torch
import torch.nn.functional as F
from torch import nn


@torch.compile
def mix(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    rate = torch.exp(-torch.exp(x))
    mixed = x * rate + y * (1.0 - rate)
    gate = torch.sigmoid(mixed - x)
    return gate * mixed + (1 - gate) * y


class Layer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)
        self.scale = 0.5

    def forward(self, hidden_states: torch.Tensor, step: int) -> torch.Tensor:
        width = (hidden_states.shape[-1] * 2 + 4) // 2 * self.scale - 1.0
        hidden_states = self.proj(hidden_states * 2.0 + 1.0)
        hidden_states = F.softmax(hidden_states / width, dim=-1)
        hidden_states = mix(hidden_states, hidden_states.mean(-1, keepdim=True))
        residual = hidden_states * self.scale + 1.0
        return self.proj(residual - hidden_states)


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Layer(dim) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for step, layer in enumerate(self.layers):
            hidden_states = layer(hidden_states, step)
        return hidden_states
