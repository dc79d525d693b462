"""Tables that are made once a key and found in a container of the module from then on."""

import torch
from torch import nn

_TABLES = {}


def codebook(bits: int, device: torch.device) -> torch.Tensor:
    key = (bits, str(device))
    if key in _TABLES:
        return _TABLES[key]
    table = torch.tensor([-1.5, -0.5, 0.5, 1.5], device=device)
    _TABLES[key] = table
    return table


def pointers(weights: tuple, device: torch.device) -> torch.Tensor:
    if (found := _TABLES.get(weights)) is not None:
        return found
    made = torch.tensor([1, 2, 3], device=device)
    _TABLES[weights] = made
    return made


class Quantized(nn.Module):
    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for _ in self.layers:
            hidden_states = hidden_states * codebook(2, hidden_states.device)[0]
            hidden_states = hidden_states + pointers((1, 2), hidden_states.device)[0]
        return hidden_states
