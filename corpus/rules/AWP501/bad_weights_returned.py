"""The weights are returned too: a finding, but no rewrite."""

import torch
from torch import nn


class Inspectable(nn.Module):
    def __init__(self, scaling: float):
        super().__init__()
        self.scaling = scaling
        self.dropout = nn.Dropout(0.1)

    def forward(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor):
        attn_weights = torch.matmul(query, key.transpose(2, 3)) * self.scaling
        attn_weights = nn.functional.softmax(attn_weights, dim=-1)  # expect: AWP501
        attn_weights = self.dropout(attn_weights)
        attn_output = torch.matmul(attn_weights, value)
        return attn_output, attn_weights
