"""Repeats by a Python number, a given output size, host masks, set-up."""

import torch
from torch import nn


class Expand(nn.Module):
    def __init__(self, layers: nn.ModuleList, mask: torch.Tensor):
        super().__init__()
        self.layers = layers
        self.register_buffer("index", mask.nonzero().squeeze(-1))

    def forward(self, hidden_states: torch.Tensor, lengths: torch.Tensor, total: int, groups: int) -> torch.Tensor:
        host = lengths.cpu()
        for layer in self.layers:
            hidden_states = torch.repeat_interleave(hidden_states, groups, dim=0)
            hidden_states = hidden_states.repeat_interleave(2, dim=1)
            spread = torch.repeat_interleave(hidden_states, lengths, dim=0, output_size=total)
            longest = host[host > 3]
            hidden_states = layer(spread)[: len(longest)]
            hidden_states = hidden_states.index_select(1, self.index)
        return hidden_states
