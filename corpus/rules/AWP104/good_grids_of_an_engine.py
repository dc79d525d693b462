"""Sizes of images that the processors of a serving engine make: its models get them on the host."""

import torch
from sglang.layers.attention import VisionBlock
from torch import nn


class VisionModel(nn.Module):
    def __init__(self, depth: int) -> None:
        super().__init__()
        self.blocks = nn.ModuleList([VisionBlock() for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor, grid_thw: torch.Tensor) -> torch.Tensor:
        for block in self.blocks:
            for t, h, w in grid_thw:
                rows = torch.arange(h, device=hidden_states.device)
                hidden_states = block(hidden_states, rows[:w])
        return hidden_states
