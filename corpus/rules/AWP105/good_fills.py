"""Mask assignments of Python numbers are fills, integer indices and slices have fixed sizes."""

import torch
from torch import nn


class Padded(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks
        self.drop = -1e4

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor, order: torch.LongTensor) -> torch.Tensor:
        keep = attention_mask.bool()
        for block in self.blocks:
            hidden_states = block(hidden_states)
            hidden_states[~keep] = 0.0
            hidden_states[hidden_states < 0] = -1
            hidden_states[..., 0][~keep] = float("-inf")
            hidden_states = hidden_states[:, order.argsort()]
            hidden_states[:, :2] = hidden_states[:, 2:4]
            hidden_states = hidden_states.masked_fill(~keep.unsqueeze(-1), 0.0)
            hidden_states = torch.where(keep.unsqueeze(-1), hidden_states, -hidden_states)
        return hidden_states
