"""Python builtins over device tensors."""

from itertools import groupby

import torch
from torch import nn


class Longformer(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, hidden_states: torch.Tensor, is_index_global: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            if bool(is_index_global.flatten().any()):
                hidden_states = hidden_states + 1
            hidden_states = layer(hidden_states)
            norms = hidden_states.norm(dim=(1, 2))
            largest = norms.max()
            order = sorted(norms)
            hidden_states = hidden_states / (largest + order[0])
        return hidden_states


class CTCDecoder(nn.Module):
    def forward(self, logits: torch.Tensor) -> list:
        words = []
        for path in torch.argmax(logits, dim=-1):
            words.append([k for k, _ in groupby(path.tolist())])
        if all(score > 0.5 for score in logits.amax(dim=(1, 2))):
            words.reverse()
        return words
