"""A test for a mask around more than cuts by it saves nothing that `torch.where` would not."""

import torch
from torch import nn


class Padder(nn.Module):
    def __init__(self, layers: nn.ModuleList) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        keep = attention_mask > 0
        for layer in self.layers:
            if keep.any():
                kept = hidden_states[keep]  # expect: AWP105
                hidden_states = layer(hidden_states) + kept.mean()
        return hidden_states
