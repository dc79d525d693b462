"""Each row against all edges: for all rows at once that would take rows times the memory."""

import torch
from torch import nn


class Histogram(nn.Module):
    def __init__(self, bins: int):
        super().__init__()
        self.bins = bins

    def forward(self, pixels: torch.Tensor) -> torch.Tensor:
        edges = torch.arange(1, self.bins, device=pixels.device, dtype=pixels.dtype)
        found = []
        for i in range(pixels.shape[0]):  # expect[low]: AWP203
            above = torch.sigmoid((pixels[i, :, None] - edges) * 4.0).mean(dim=0)
            found.append(above[:-1] - above[1:])
        return torch.stack(found)
