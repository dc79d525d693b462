"""Bounds for a kernel that the host has in a list, asked of the copy on the device in every layer."""

import torch
from flash_attn import flash_attn_varlen_func
from torch import nn


class Packed(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, lengths: list[int]) -> torch.Tensor:
        for layer in self.layers:
            q, k, v = layer(hidden_states)
            ends = [0]
            for length in lengths:
                ends.append(ends[-1] + length)
            bounds = torch.tensor(ends, dtype=torch.int32, device=hidden_states.device)  # expect: AWP601
            max_seqlen = int((bounds[1:] - bounds[:-1]).max().item())  # expect: AWP101
            hidden_states = flash_attn_varlen_func(q, k, v, bounds, bounds, max_seqlen, max_seqlen)
        return hidden_states
