"""Lengths on the device as bounds, sizes and ranges."""

import torch
from torch import nn


class Video(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        batch_size = hidden_states.shape[0]
        lengths = attention_mask.sum(dim=1)
        longest = lengths.max().item()
        mask = torch.zeros_like(attention_mask)
        lengths_values = lengths.tolist()
        for i in range(batch_size):
            mask[i, : lengths_values[i]] = 1
        for block in self.blocks:
            hidden_states = block(hidden_states)[:, :longest]
            positions = torch.arange(longest, device=hidden_states.device)
            scale = torch.ones(batch_size, longest, device=hidden_states.device)
            for j in range(longest):
                hidden_states = hidden_states * positions[j] * scale[:, j, None, None]
        return hidden_states * mask.unsqueeze(-1)
