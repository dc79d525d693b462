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
            positions = torch.arange(length, dtype=torch.long).to(device)  # expect: AWP602
            mask = torch.ones(length, length).tril()
            bias = torch.zeros(1, length).cuda()  # expect: AWP602
            ramp = torch.linspace(0, 1, steps=length).to(hidden_states.device)  # expect: AWP602
            state = torch.full(  # expect: AWP602
                (length,),
                0.5,
            ).to(device, hidden_states.dtype)
            hidden_states = layer(hidden_states, positions, mask.to(device), bias, ramp, state)  # expect: AWP602
        return hidden_states
