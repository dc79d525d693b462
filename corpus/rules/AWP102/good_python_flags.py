"""Tests of None, shapes, dtypes, Python flags and host values."""

from typing import Optional

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList, dim: int):
        super().__init__()
        self.layers = layers
        self.norm = nn.LayerNorm(dim)
        self.prenorm = True

    def forward(
        self,
        hidden_states: torch.Tensor,
        attention_mask: Optional[torch.Tensor] = None,
        residual: Optional[torch.Tensor] = None,
        output_all: bool = False,
    ) -> torch.Tensor:
        kept = []
        for index, layer in enumerate(self.layers):
            hidden_states = layer(hidden_states)
            if attention_mask is not None and attention_mask.dim() == 2:
                hidden_states = hidden_states * attention_mask.unsqueeze(-1)
            if residual is None or not self.prenorm:
                residual = hidden_states
            if hidden_states.shape[1] > 1 and hidden_states.dtype == torch.float16:
                hidden_states = hidden_states.float()
            if hidden_states.is_contiguous() and hidden_states.numel() > 0 and index not in (0, 1):
                hidden_states = self.norm(hidden_states)
            if output_all:
                kept.append(hidden_states)
        return torch.stack(kept) if kept else hidden_states
