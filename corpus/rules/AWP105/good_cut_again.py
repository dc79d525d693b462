"""What a mask has cut down already, and cuts that a test saves where there is nothing to cut."""

import torch
from torch import nn


class Proposals(nn.Module):
    def __init__(self, layers: nn.ModuleList, threshold: float) -> None:
        super().__init__()
        self.layers = layers
        self.threshold = threshold

    def forward(self, masks: torch.Tensor, scores: torch.Tensor, stability, edges: torch.Tensor) -> torch.Tensor:
        inside = edges > 0
        steady = masks.mean(-1) > self.threshold
        for layer in self.layers:
            picked = stability(layer) > self.threshold
            masks, scores = masks[picked], scores[picked]
            masks, scores = masks[steady], scores[steady]
        for layer in self.layers:
            if not torch.all(inside):
                masks, scores = masks[inside], scores[inside]
            masks = layer(masks)
        return masks * scores
