"""Pad tokens are written through a boolean mask in every layer."""

import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self, dim: int, num_layers: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_layers)])
        self.pad_token = nn.Parameter(torch.zeros(dim))

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        floor = torch.zeros((), device=hidden_states.device)
        padded = attention_mask == 0
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            scores = hidden_states * 2.0
            # values below the floor
            scores.copy_(torch.where(scores < -4.0, floor, scores))
            hidden_states = hidden_states + scores
            hidden_states[padded] = self.pad_token  # expect: AWP105
        return hidden_states
