"""Residuals that the norm takes along, that another norm separates from the sum, and norms of torch itself."""

import torch
from torch import nn
from vllm.model_executor.layers.layernorm import RMSNorm


class FusedLayer(nn.Module):
    def __init__(self, dim: int, attention: nn.Module, mlp: nn.Module):
        super().__init__()
        self.attention = attention
        self.mlp = mlp
        self.input_norm = RMSNorm(dim)
        self.post_norm = RMSNorm(dim)
        self.plain = nn.LayerNorm(dim)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor, residual: torch.Tensor) -> tuple:
        hidden_states, residual = self.input_norm(hidden_states, residual)
        hidden_states = self.attention(positions, hidden_states)
        hidden_states, residual = self.post_norm(hidden_states, residual)
        hidden_states = self.mlp(hidden_states)
        return hidden_states, residual


class SandwichLayer(nn.Module):
    def __init__(self, dim: int, attention: nn.Module):
        super().__init__()
        self.attention = attention
        self.before = RMSNorm(dim)
        self.after = RMSNorm(dim)
        self.plain = nn.LayerNorm(dim)

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        residual = hidden_states
        hidden_states = self.after(self.attention(positions, self.before(hidden_states)))
        hidden_states = residual + hidden_states
        return self.plain(hidden_states)


class Model(nn.Module):
    def __init__(self, dim: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([FusedLayer(dim, nn.Identity(), nn.Linear(dim, dim)) for _ in range(depth)])
        self.others = nn.ModuleList([SandwichLayer(dim, nn.Identity()) for _ in range(depth)])

    def forward(self, positions: torch.Tensor, hidden_states: torch.Tensor) -> torch.Tensor:
        residual = torch.zeros_like(hidden_states)
        for layer in self.layers:
            hidden_states, residual = layer(positions, hidden_states, residual)
        for layer in self.others:
            hidden_states = layer(positions, hidden_states)
        return hidden_states
