"""Sizes given, host tensors, set-up."""

import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, layers: nn.ModuleList, num_experts: int, basis: torch.Tensor):
        super().__init__()
        self.layers = layers
        self.num_experts = num_experts
        self.register_buffer("inverse", torch.linalg.inv(basis))

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states) @ self.inverse
            picked = hidden_states.argmax(dim=-1)
            chosen = F.one_hot(picked, num_classes=self.num_experts)
            counts = torch.zeros(self.num_experts, device=picked.device).scatter_add_(
                0, picked.flatten(), torch.ones_like(picked.flatten(), dtype=torch.float32)
            )
            spread = torch.histc(hidden_states, bins=10, min=0, max=1)
            hidden_states = hidden_states * counts.mean() * chosen.float().mean() * spread.mean()
        return hidden_states


def check(a: torch.Tensor, b: torch.Tensor) -> bool:
    return torch.equal(a.cpu(), b.cpu())
