"""Set-up, once a request, host data, and random numbers from the CPU generator on purpose."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList, device: str):
        super().__init__()
        self.layers = layers
        self.table = torch.arange(128).to(device)

    def forward(self, hidden_states: torch.Tensor, rows: list) -> torch.Tensor:
        start = torch.zeros(1).to(hidden_states.device)
        for layer in self.layers:
            picked = torch.tensor(rows).to(hidden_states.device)
            noise = torch.randn(hidden_states.shape, generator=torch.Generator("cpu")).to(hidden_states.device)
            hidden_states = layer(hidden_states + noise, picked) + start
        return hidden_states
