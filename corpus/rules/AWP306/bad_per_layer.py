"""Rotary tables and a causal table computed again by every layer."""

import torch
from torch import nn


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    return x * cos + x.flip(-1) * sin


class Attention(nn.Module):
    def __init__(self, dim: int, rotary_emb: nn.Module):
        super().__init__()
        self.q_proj = nn.Linear(dim, dim)
        self.rotary_emb = rotary_emb

    def forward(self, hidden_states: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        query_states = self.q_proj(hidden_states)
        cos, sin = self.rotary_emb(query_states, position_ids)  # expect: AWP306
        length = hidden_states.shape[1]
        causal = torch.tril(torch.ones(length, length, device=hidden_states.device))  # expect: AWP306
        scores = rotate(query_states, cos, sin) @ query_states.transpose(-1, -2)
        return (scores * causal) @ query_states


class Model(nn.Module):
    def __init__(self, dim: int, depth: int, rotary_emb: nn.Module):
        super().__init__()
        self.layers = nn.ModuleList([Attention(dim, rotary_emb) for _ in range(depth)])

    def forward(self, hidden_states: torch.Tensor, position_ids: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states, position_ids)
        return hidden_states
