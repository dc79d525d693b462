"""Keys and values of the past copied at every token."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.qkv = nn.Linear(dim, 3 * dim)

    def forward(self, hidden_states: torch.Tensor, layer_past: tuple = None):
        query, key, value = self.qkv(hidden_states).chunk(3, dim=-1)
        if layer_past is not None:
            past_key, past_value = layer_past
            key = torch.cat((past_key, key), dim=-2)  # expect: AWP506
            value = torch.cat((past_value, value), dim=-2)  # expect: AWP506
        out = nn.functional.scaled_dot_product_attention(query, key, value)
        return out, (key, value)


class Cached(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.k_proj = nn.Linear(dim, dim)
        self.k_cache = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        k = self.k_proj(x)
        if self.k_cache is not None:
            k = torch.cat([self.k_cache, k], dim=1)  # expect: AWP506
        self.k_cache = k
        return k
