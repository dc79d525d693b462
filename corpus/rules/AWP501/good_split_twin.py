"""The old processor beside its fused successor; scores that nobody applies."""

import torch
import torch.nn.functional as F
from torch import nn


class Processor(nn.Module):
    def forward(self, attn, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        probs = attn.get_attention_scores(query, key)
        return torch.bmm(probs, value)


class Processor2_0(nn.Module):
    def forward(self, attn, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return F.scaled_dot_product_attention(query, key, value)


class Inspect(nn.Module):
    def forward(self, attn, query: torch.Tensor, key: torch.Tensor) -> torch.Tensor:
        return attn.get_attention_scores(query, key).mean(1)
