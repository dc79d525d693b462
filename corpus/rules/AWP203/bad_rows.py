"""Row by row where the whole tensor would do."""

import torch
from torch import nn


class Model(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, scales: torch.Tensor, offsets: torch.Tensor) -> torch.Tensor:
        batch_size = hidden_states.shape[0]
        for layer in self.layers:
            out = torch.zeros_like(scales)
            for b in range(batch_size):  # expect: AWP203
                centred = scales[b] - offsets[b]
                out[b] = torch.exp(centred) * 2.0
            norms = []
            for row in scales:  # expect: AWP203
                norms.append(torch.sqrt((row * row).sum()))
            hidden_states = layer(hidden_states, out, torch.stack(norms))
        return hidden_states


def causal_mask(length: int, device: torch.device) -> torch.Tensor:
    seq_len = length
    mask = torch.full((seq_len, seq_len), float("-inf"), device=device)
    for i in range(seq_len):  # expect: AWP203
        mask[i, : i + 1] = 0
    return mask


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states, causal_mask(hidden_states.shape[1], hidden_states.device))
        return hidden_states
