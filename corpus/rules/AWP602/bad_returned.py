"""Helpers that build masks and positions on the CPU; their callers move them in every layer."""

import torch
from torch import nn


def build_relative_position(query_size: int, key_size: int) -> torch.Tensor:
    q_ids = torch.arange(0, query_size)  # expect: AWP602
    k_ids = torch.arange(0, key_size)
    return q_ids[:, None] - k_ids[None, :]


class Layer(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def get_attn_mask(self, height: int, width: int) -> torch.Tensor:
        mask = torch.zeros((1, height, width))  # expect: AWP602
        mask = mask + torch.ones(height, width).tril()
        return mask.unsqueeze(-1)

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        relative = build_relative_position(hidden_states.shape[1], hidden_states.shape[1])
        relative = relative.long().to(hidden_states.device)
        mask = self.get_attn_mask(hidden_states.shape[1], hidden_states.shape[2])
        if mask is not None:
            mask = mask.to(hidden_states.device)
        return self.proj(hidden_states) + relative.float().mean() + mask.mean()


class Stack(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Layer(dim) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)
        return hidden_states
