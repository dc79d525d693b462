"""`and`, `or`, `in`: Python asks for a truth value here too."""

import torch
from torch import nn


class Gate(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers
        self.register_buffer("limit", torch.tensor(3.0))

    def forward(self, hidden_states: torch.Tensor, use_gate: bool, kinds: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
            norm = hidden_states.norm()
            if use_gate:
                hidden_states = torch.where(norm > self.limit, hidden_states / norm, hidden_states)
            if 7 in hidden_states.argmax(-1):
                hidden_states = -hidden_states
        return hidden_states
