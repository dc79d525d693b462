"""Constants, sizes and lists copied to the device in every layer."""

import numpy as np
import torch
from torch import nn


MEAN = (0.485, 0.456, 0.406)


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        device = hidden_states.device
        for layer in self.layers:
            length = hidden_states.shape[1]
            scale = torch.tensor([1.0, 2.0, 4.0], device=device)  # expect: AWP601
            lowest = torch.tensor(-1e4, device=hidden_states.device)  # expect: AWP601
            size = torch.tensor(length, device=device)  # expect: AWP601
            window = torch.from_numpy(np.hanning(16)).to(device)  # expect: AWP601
            table = torch.tensor((0, 1, 2, 3)).cuda()  # expect: AWP601
            mean = torch.tensor(MEAN, device=device)  # expect: AWP601
            lengths = torch.tensor([length + row for row in range(3)], device=device)  # expect: AWP601
            bounds = torch.as_tensor([0, length], device=device)  # expect: AWP601
            hidden_states = layer(hidden_states, scale, lowest, size, window, table, bounds, mean, lengths)
        return hidden_states
