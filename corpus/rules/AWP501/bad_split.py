"""The scores are made in a method of another class, the product with the values follows here."""

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


class Block(nn.Module):
    def __init__(self, attn: Attention):
        super().__init__()
        self.attn = attn

    def forward(self, hidden_states: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        query = self.attn.to_q(hidden_states)
        attention_probs = self.attn.get_attention_scores(query, key)  # expect: AWP501
        return torch.bmm(attention_probs, value)
