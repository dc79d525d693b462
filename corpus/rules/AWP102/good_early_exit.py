"""An early exit from the layers, and a mask that somebody made whole: neither is the usual way."""

import torch
from torch import nn


class Matcher(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, x: torch.Tensor, attention_mask: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
            if attention_mask.dim() == 4:
                if attention_mask.max() != 0:  # expect[low]: AWP102
                    x = x * attention_mask[:, 0]
            if self.settled(x):  # expect[low]: AWP102
                break
        return x

    def settled(self, x: torch.Tensor) -> torch.Tensor:
        return (x.norm(dim=-1) < 0.1).float().mean() > 0.9
