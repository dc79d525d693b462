"""The same call twice, in a row and over two statements."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        query = self.proj(hidden_states).transpose(1, 2).contiguous()
        scores = (query @ query.transpose(-1, -2)).float()
        mask = attention_mask.to(scores.dtype)
        state = query.detach()
        copy = state.clone()
        values = hidden_states.to(torch.float32)
        mean = values.mean(-1)
        return scores + mask + copy + mean
