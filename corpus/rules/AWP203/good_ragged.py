"""Rows whose bounds come from data, on the host or on the device, and a mask that is made at once."""

import torch
from torch import nn


def ragged_mask(lengths: list, seq_len: int, device: torch.device) -> torch.Tensor:
    mask = torch.full((seq_len, seq_len), float("-inf"), device=device)
    for i in range(seq_len):
        length = lengths[i]
        mask[i, :length] = 0
    return mask


def allow_near(weights: torch.Tensor, reached: torch.Tensor) -> torch.Tensor:
    for i in range(weights.shape[0]):
        weights[i, reached[i] + 3 :] = 0
        weights[i, : reached[i] - 1] = 0
    return weights


def frame_mask(frames: int, per_frame: int, device: torch.device) -> torch.Tensor:
    index = torch.arange(frames * per_frame, device=device) // per_frame
    return torch.where(index[:, None] >= index[None, :], 0.0, float("-inf"))


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, lengths: list) -> torch.Tensor:
        for layer in self.layers:
            mask = frame_mask(hidden_states.shape[1], hidden_states.shape[2], hidden_states.device)
            ragged = ragged_mask(lengths, hidden_states.shape[1], hidden_states.device)
            near = allow_near(hidden_states.mean(-1), hidden_states.mean(-1).argmax(-1))
            hidden_states = layer(hidden_states, mask, ragged, near)
        return hidden_states
