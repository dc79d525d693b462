"""A loss begins at nothing, on the device: only training reads it. And a network that runs its layers itself."""

import torch
from torch import nn


class Codebook(nn.Module):
    def __init__(self, width: int, weight: float):
        super().__init__()
        self.mix = nn.Linear(width, width)
        self.weight = weight

    def forward(self, x: torch.Tensor) -> tuple:
        found = self.mix(x)
        loss = torch.tensor([0.0], device=x.device, requires_grad=self.training)  # expect[low]: AWP601
        if self.training:
            loss = loss + self.weight * nn.functional.mse_loss(found.detach(), x)
        return found, loss


class Quantizer(nn.Module):
    def __init__(self, layers: int, width: int):
        super().__init__()
        self.layers = nn.ModuleList(Codebook(width, 1.0) for _ in range(layers))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = x - layer(x)[0]
        return x


class TimeConvNet(nn.Module):
    def __init__(self, blocks: nn.ModuleList):
        super().__init__()
        self.blocks = blocks

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        skipped = torch.tensor([0.0], device=x.device)
        for block in self.blocks:
            x, skip = block(x)
            skipped = skipped + skip
        return skipped
