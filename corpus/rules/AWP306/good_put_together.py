"""A pair of small tensors put beside each other in the layers of a detector."""

import torch
from torch import nn


class Decoder(nn.Module):
    def __init__(self, layers: nn.ModuleList):
        super().__init__()
        self.layers = layers

    def forward(self, queries: torch.Tensor, boxes: torch.Tensor, valid_ratios: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            points = boxes[:, :, None] * torch.cat([valid_ratios, valid_ratios], -1)[None, :]
            queries = layer(queries, points)
            boxes = queries[..., :4]
        return queries
