"""Asserts, training branches, host tensors, set-up."""

import torch
from torch import nn


class Router(nn.Module):
    def __init__(self, layers: nn.ModuleList, table: torch.Tensor):
        super().__init__()
        if (table < 0).any():
            raise ValueError("negative entries")
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, lengths_cpu: torch.Tensor) -> torch.Tensor:
        longest = lengths_cpu.cpu()
        for layer in self.layers:
            assert torch.isfinite(hidden_states).all(), "not finite"
            hidden_states = layer(hidden_states)
            if (longest > 5).any():
                hidden_states = hidden_states[:, :5]
            if self.training and hidden_states.mean() > 1:
                hidden_states = hidden_states * 0.5
        return hidden_states
