"""Whole tensors, layers, rows that differ, model calls, one operation a row, once a request."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList, head: nn.Module):
        super().__init__()
        self.layers = layers
        self.head = head

    def forward(self, hidden_states: torch.Tensor, scales: torch.Tensor, lengths: list) -> torch.Tensor:
        batch_size = hidden_states.shape[0]
        for layer in self.layers:
            out = torch.exp(scales - scales.mean(dim=0)) * 2.0
            for b in range(batch_size):
                if lengths[b] > 3:
                    out[b, : lengths[b]] = torch.relu(out[b, : lengths[b]] * 2.0)
            parts = []
            for row in hidden_states:
                parts.append(self.head(row) + row.mean())
            for b in range(batch_size):
                out[b] += 1.0
            hidden_states = layer(hidden_states, out, torch.stack(parts))
        return hidden_states


class Average(nn.Module):
    """A row needs what the one before left."""

    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            state, found = hidden_states[0], []
            for index in range(hidden_states.shape[0]):
                state = weight * hidden_states[index] + (1.0 - weight) * state
                found.append(state.unsqueeze(0))
            hidden_states = layer(torch.cat(found, dim=0))
        return hidden_states
