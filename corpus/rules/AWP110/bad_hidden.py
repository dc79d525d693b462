"""Calls that wait inside."""

import torch
import torch.nn.functional as F
from torch import nn


class Router(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            before = hidden_states
            hidden_states = layer(hidden_states) + before
            picked = hidden_states.argmax(dim=-1)
            chosen = F.one_hot(picked)  # expect: AWP110
            counts = torch.bincount(picked.flatten())  # expect: AWP110
            if torch.equal(before, hidden_states):  # expect: AWP110
                break
            spread = torch.linalg.inv(torch.diag(counts.float() + 1))  # expect: AWP110
            hidden_states = hidden_states * spread.mean() * chosen.float().mean()
        return hidden_states
