"""Tensor reductions, Python numbers, shapes, sums, unpacking."""

from itertools import groupby

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, sizes: list, masks: list) -> torch.Tensor:
        longest = max(hidden_states.shape)
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            peak = hidden_states.max()
            hidden_states = hidden_states / torch.maximum(peak, hidden_states.mean())
            total = sum(part.sum() for part in hidden_states)
            rows = [row * 2 for row in hidden_states]
            first, second = hidden_states.chunk(2, dim=-1)
            width = max(size[0] for size in sizes)
            if all(mask is None for mask in masks) and any(size[1] > longest for size in sizes):
                hidden_states = hidden_states[:, :width] + total + rows[0] + first.mean() + second.mean()
        return hidden_states


def decode(logits: torch.Tensor) -> list:
    paths = logits.argmax(-1).tolist()
    return [[k for k, _ in groupby(path)] for path in paths]
