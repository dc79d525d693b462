"""A mask of frames filled row by row, with bounds that are computed from the row's number."""

import torch
from torch import nn


def frame_mask(frames: int, per_frame: int, device: torch.device) -> torch.Tensor:
    seq_len = frames * per_frame
    mask = torch.full((seq_len, seq_len), float("-inf"), device=device)
    for i in range(seq_len):  # expect: AWP203
        frame = i // per_frame
        mask[i, : (frame + 1) * per_frame] = 0
    return mask


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            mask = frame_mask(hidden_states.shape[1], hidden_states.shape[2], hidden_states.device)
            hidden_states = layer(hidden_states, mask)
        return hidden_states
