"""Residuals added by themselves before an engine's norm, which would take them along."""

import torch
from torch import nn
from vllm.model_executor.layers.layernorm import RMSNorm


class DecoderLayer(nn.Module):
    def __init__(self, dim: int, attention: nn.Module, mlp: nn.Module):
        super().__init__()
        self.attention = attention
        self.mlp = mlp
        self.input_norm = RMSNorm(dim)
        self.post_norm = RMSNorm(dim)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        residual = hidden_states
        hidden_states = self.input_norm(hidden_states)
        hidden_states = self.attention(positions, hidden_states)
        hidden_states = residual + hidden_states  # expect: AWP301
        residual = hidden_states
        hidden_states = self.post_norm(hidden_states)
        hidden_states = self.mlp(hidden_states)
        return residual + hidden_states


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([DecoderLayer(dim, nn.Identity(), nn.Linear(dim, dim)) for _ in range(depth)])

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(positions, hidden_states)
        return hidden_states
