"""The same call twice, in a row and over two statements."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.proj = nn.Linear(dim, dim)

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        query = self.proj(hidden_states).transpose(1, 2).contiguous().contiguous()  # expect: AWP307
        scores = (query @ query.transpose(-1, -2)).float().float()  # expect: AWP307
        mask = attention_mask.to(scores.dtype).to(scores.dtype)  # expect: AWP307
        state = query.detach().detach()  # expect: AWP307
        copy = state.clone().clone()  # expect: AWP307
        values = hidden_states.to(torch.float32)
        mean = values.to(torch.float32).mean(-1)  # expect[low]: AWP307
        return scores + mask + copy + mean
