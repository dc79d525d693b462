"""Scores that somebody else wants, too, and slices that save memory where the whole has a class of its own."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.to_q = nn.Linear(dim, dim)
        self.scale = dim**-0.5

    def get_attention_scores(self, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        scores = torch.baddbmm(query.new_empty(1), query, key.transpose(-1, -2), beta=0, alpha=self.scale)
        return scores.softmax(dim=-1)


class StoringAttnProcessor:
    def __init__(self, store):
        self.store = store

    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        query = attn.to_q(hidden_states)
        attention_probs = attn.get_attention_scores(query, hidden_states)
        self.store(attention_probs, place="down")
        return torch.bmm(attention_probs, hidden_states)


class AttnProcessor:
    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        query = attn.to_q(hidden_states)
        return nn.functional.scaled_dot_product_attention(query, hidden_states, hidden_states)


class SlicedAttnProcessor:
    def __init__(self, slice_size: int):
        self.slice_size = slice_size

    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        query = attn.to_q(hidden_states)
        for start in range(0, len(query), self.slice_size):
            piece = slice(start, start + self.slice_size)
            attn_slice = attn.get_attention_scores(query[piece], hidden_states[piece])
            hidden_states[piece] = torch.bmm(attn_slice, hidden_states[piece])
        return hidden_states
