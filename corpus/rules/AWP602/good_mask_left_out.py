"""A mask that a layer makes where it is given none, which models and generation do not do."""

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.mix = nn.Linear(width, width)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if mask is None:
            mask = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).to(x.device)  # expect[low]: AWP602
        return self.mix(x) * mask.any()
