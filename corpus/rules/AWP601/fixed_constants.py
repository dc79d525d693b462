"""Constants, sizes and lists copied to the device in every layer."""

import numpy as np
import torch
from torch import nn


@functools.cache
def _scale_on(device):
    return torch.tensor([1.0, 2.0, 4.0], device=device)


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        device = hidden_states.device
        for layer in self.layers:
            length = hidden_states.shape[1]
            scale = _scale_on(device)
            lowest = torch.full((), -1e4, device=hidden_states.device)
            size = torch.full((), length, device=device)
            window = torch.from_numpy(np.hanning(16)).to(device)
            table = torch.tensor((0, 1, 2, 3)).cuda()
            bounds = torch.as_tensor([0, length], device=device)
            hidden_states = layer(hidden_states, scale, lowest, size, window, table, bounds)
        return hidden_states
