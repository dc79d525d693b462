"""What a helper gives lies in memory that is pinned, or may be."""

import torch
from torch import nn


def staged(rows):
    room = torch.empty(rows.shape, dtype=rows.dtype, pin_memory=True)
    return room.copy_(rows)


class Runner(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            places = staged(torch.arange(hidden_states.shape[1]) * 2)
            hidden_states = layer(hidden_states, places.to(hidden_states.device, non_blocking=True))
        return hidden_states
