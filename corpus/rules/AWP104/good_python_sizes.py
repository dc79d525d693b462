"""Sizes from shapes, Python numbers and lists; tensors as indices."""

import torch
from torch import nn


class Video(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, lengths: list, order: torch.Tensor, start: int) -> torch.Tensor:
        batch_size, length, _ = hidden_states.shape
        for block in self.blocks:
            hidden_states = block(hidden_states)[:, start : start + length]
            hidden_states = hidden_states[order]
            positions = torch.arange(length, device=hidden_states.device)
            limit = torch.tensor(lengths, device=hidden_states.device)
            mask = positions[None, :] < limit[:, None]
            hidden_states = hidden_states * mask.unsqueeze(-1)
            for i in range(batch_size):
                hidden_states[i, lengths[i] :] = 0
            hidden_states = hidden_states.view(batch_size, -1, hidden_states.shape[-1])
        return hidden_states
