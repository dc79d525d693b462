"""A processor for guidance that takes both halves of its input through the same layers, one after the other."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, processor=None):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.processor = processor

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.processor(self, hidden_states)


class FusedAttnProcessor:
    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        query, key, value = attn.to_qkv(hidden_states).chunk(3, dim=-1)
        return nn.functional.scaled_dot_product_attention(query, key, value)


class GuidedAttnProcessor:
    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        plain, perturbed = hidden_states.chunk(2)
        query = attn.to_q(plain)
        key = attn.to_k(plain)
        value = attn.to_v(plain)
        first = nn.functional.scaled_dot_product_attention(query, key, value)
        query_perturbed = attn.to_q(perturbed)
        key_perturbed = attn.to_k(perturbed)
        value_perturbed = attn.to_v(perturbed)
        return torch.cat([first, query_perturbed + key_perturbed + value_perturbed])
