"""A decoder that looks at the attention mask in every layer."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, dim: int, num_layers: int):
        super().__init__()
        self.layers = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_layers)])

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            hidden_states = layer(hidden_states)

            hidden_states = torch.where((attention_mask == 0).any(), hidden_states * attention_mask.unsqueeze(-1), hidden_states)

            hidden_states = torch.where(torch.isfinite(hidden_states).all(), hidden_states, torch.nan_to_num(hidden_states))
        return hidden_states
