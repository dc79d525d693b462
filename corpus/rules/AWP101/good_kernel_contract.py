"""A variable-length kernel wants its longest sequence as a Python number; split sizes are a list by contract."""

import torch
from flash_attn import flash_attn_varlen_func
from torch import nn


class Packed(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            q, k, v = layer(hidden_states)
            lengths = cu_seqlens[1:] - cu_seqlens[:-1]
            max_seqlen = lengths.max().item()
            out = flash_attn_varlen_func(q, k, v, cu_seqlens, cu_seqlens, max_seqlen, max_seqlen)
            parts = torch.split(out, lengths.tolist())
            hidden_states = torch.cat([part - part.mean(0) for part in parts])
        return hidden_states
