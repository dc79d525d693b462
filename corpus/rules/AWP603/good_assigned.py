"""Parts assigned from the device, numbers, host tables, and casts of what is on the device already."""

import torch
from torch import nn


class Runner(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers
        self.table = torch.zeros(64, dtype=torch.int32, device="cuda")
        self.host_table = torch.zeros(64, dtype=torch.int32)
        self.register_buffer("scale", torch.tensor([1.0, 0.5]))

    def forward(self, hidden_states: torch.Tensor, lengths: list) -> torch.Tensor:
        for layer in self.layers:
            bounds = torch.tensor(lengths).cumsum(0)
            self.host_table[: bounds.shape[0]] = bounds
            self.table[:2] = hidden_states.argmax(dim=-1)[0, :2]
            self.table[0] = 3
            self.table[1] = torch.tensor(3)
            hidden_states = layer(hidden_states, self.table, self.scale.type_as(hidden_states))
        return hidden_states
