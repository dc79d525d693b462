"""Boolean-mask reads per sample and per layer."""

import torch
from torch import nn


class Connector(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, hidden_states: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        keep = attention_mask.bool()
        for block in self.blocks:
            rows = [hidden_states[i, keep[i]] for i in range(hidden_states.shape[0])]  # expect: AWP105
            packed = hidden_states[keep]  # expect: AWP105
            mean = packed.mean(0) + rows[0].mean(0)
            valid = hidden_states[:, attention_mask[0] > 0]  # expect: AWP105
            hidden_states = block(hidden_states - mean + valid.mean(1, keepdim=True))
        return hidden_states
