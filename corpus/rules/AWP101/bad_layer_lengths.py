"""Vision tower: each block converts values of the device grid to Python numbers."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.proj(hidden_states)


class Tower(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.blocks = nn.ModuleList([Block(dim) for _ in range(depth)])
        self.gain = nn.Parameter(torch.ones(depth))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for i, block in enumerate(self.blocks):
            out = block(hidden_states)
            norm = out.norm()
            rate = float(norm)  # expect: AWP101
            weights = out.mean(dim=(0, 1)).cpu().numpy()  # expect: AWP101
            hidden_states = hidden_states + out / (rate + float(weights.max()))
        return hidden_states
