"""Different inputs, an input that changes in between, other layers, a branch that fuses on request."""

import torch
from torch import nn


class CrossAttention(nn.Module):
    def __init__(self, dim: int, fused: bool):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.to_kv = nn.Linear(dim, 2 * dim)
        self.fused_projections = fused
        self.query = nn.Linear(dim, dim)
        self.key = nn.Linear(dim, dim)
        self.up_proj = nn.Linear(dim, dim)
        self.down_proj = nn.Linear(dim, dim)
        self.q_proj = nn.Linear(dim, dim)
        self.k_proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, encoder_hidden_states: torch.Tensor) -> torch.Tensor:
        query = self.to_q(hidden_states)
        key, value = self.to_kv(encoder_hidden_states).chunk(2, dim=-1)
        first = self.query(hidden_states)
        hidden_states = hidden_states + value
        second = self.key(hidden_states)
        if self.fused_projections:
            third = self.to_kv(hidden_states)[..., : first.shape[-1]]
        else:
            third = self.q_proj(hidden_states) + self.k_proj(hidden_states)
        deep = self.down_proj(self.up_proj(hidden_states))
        return query + key + first + second + third + deep


class Decoder(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([CrossAttention(dim, False) for _ in range(depth)])

    @torch.inference_mode()
    def generate(self, hidden_states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for _ in range(max_new_tokens):
            for layer in self.layers:
                hidden_states = layer(hidden_states, hidden_states)
        return hidden_states
