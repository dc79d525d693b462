"""Bounds of elements whose name a comprehension binds, and a loop after it once more."""

import torch


class Prompts(torch.nn.Module):
    def __init__(self, layers: torch.nn.ModuleList, bounds: list):
        super().__init__()
        self.layers = layers
        self.bounds = bounds

    def forward(self, x: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            areas = torch.stack([x[b[1] : b[3], b[0] : b[2]].sum() for b in boxes])  # expect: AWP104
            for i, b in enumerate(self.bounds):
                x = x * b[0]
            x = layer(x, areas)
        return x
