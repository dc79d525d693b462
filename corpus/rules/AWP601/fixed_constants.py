"""Constants, sizes and lists copied to the device in every layer."""

import numpy as np
import torch
from torch import nn


MEAN = (0.485, 0.456, 0.406)


@functools.cache
def _mean_on(device):
    return torch.tensor(MEAN, device=device)


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
            scale = _scale_on(device)  # expect: AWP601
            lowest = torch.full((), -1e4, device=hidden_states.device)  # expect: AWP601
            size = torch.full((), length, device=device)  # expect: AWP601
            window = torch.from_numpy(np.hanning(16)).to(device)  # expect: AWP601
            table = torch.tensor((0, 1, 2, 3)).cuda()  # expect: AWP601
            mean = _mean_on(device)  # expect: AWP601
            lengths = torch.tensor([length + row for row in range(3)]).to(device, non_blocking=True)  # expect: AWP601
            bounds = torch.as_tensor([0, length], device=device)  # expect: AWP601
            hidden_states = layer(hidden_states, scale, lowest, size, window, table, bounds, mean, lengths)
        return hidden_states
