"""An attention processor that reads the many positions of a picture three times: each product fills the device."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int, processor=None):
        super().__init__()
        self.heads = heads
        self.to_q = nn.Linear(dim, dim)
        self.to_k = nn.Linear(dim, dim)
        self.to_v = nn.Linear(dim, dim)
        self.processor = processor

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        return self.processor(self, hidden_states)


class VideoAttnProcessor:
    def __call__(self, attn: Attention, hidden_states: torch.Tensor) -> torch.Tensor:
        query = attn.to_q(hidden_states)
        key = attn.to_k(hidden_states)
        value = attn.to_v(hidden_states)
        return nn.functional.scaled_dot_product_attention(query, key, value)
