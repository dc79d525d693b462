"""Masks and positions made on the CPU and moved, in every layer."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        device = hidden_states.device
        length = hidden_states.shape[1]
        for layer in self.layers:
            positions = torch.arange(length, dtype=torch.long, device=device)
            mask = torch.ones(length, length).tril()
            bias = torch.zeros(1, length, device="cuda")
            ramp = torch.linspace(0, 1, steps=length, device=hidden_states.device)
            state = torch.full(
                (length,),
                0.5,
                device=device,
                dtype=hidden_states.dtype,
            )
            hidden_states = layer(hidden_states, positions, mask.to(device), bias, ramp, state)  # expect: AWP602
        return hidden_states
