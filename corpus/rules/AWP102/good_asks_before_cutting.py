"""A look at a mask that saves copies of what mostly stays whole."""

import torch
from torch import nn


class Proposals(nn.Module):
    def __init__(self, layers: nn.ModuleList) -> None:
        super().__init__()
        self.layers = layers

    def forward(self, masks: torch.Tensor, scores: torch.Tensor, edges: torch.Tensor) -> torch.Tensor:
        inside = edges > 0
        for layer in self.layers:
            if not torch.all(inside):
                masks, scores = masks[inside], scores[inside]
            if not inside.all():
                masks = masks[inside]
            masks = layer(masks)
        return masks * scores
