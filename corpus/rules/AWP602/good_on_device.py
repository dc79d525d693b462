"""Made on the device, casts, moves to the CPU."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            positions = torch.arange(hidden_states.shape[1], device=hidden_states.device)
            zeros = torch.zeros_like(hidden_states).to(torch.float16)
            mask = hidden_states.new_ones(hidden_states.shape[:2]).to(hidden_states.dtype)
            kept = torch.zeros(4, device="cuda").to("cpu")
            moved = positions.to(hidden_states.device)
            hidden_states = layer(hidden_states, moved, zeros, mask, kept)
        return hidden_states
