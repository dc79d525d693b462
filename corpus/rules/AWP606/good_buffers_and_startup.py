"""Buffers, results that are stored back, models moved at start-up, offloading on purpose."""

import torch
from torch import nn
from transformers import AutoModel

encoder = AutoModel.from_pretrained("encoder").to("cuda")


class Rope(nn.Module):
    def __init__(self, dim: int):
        super().__init__()
        self.register_buffer("freqs", torch.arange(0, dim, 2) / dim, persistent=False)
        self.table = torch.linspace(0, 1, steps=dim)
        self.cache = {}

    def forward(self, positions: torch.Tensor) -> torch.Tensor:
        if self.table.device != positions.device:
            self.table = self.table.to(positions.device)
        key = positions.device
        if key not in self.cache:
            self.cache[key] = self.table.to(key)
        return torch.outer(positions, self.freqs.to(positions.device)) + self.cache[key][::2]


class Swapper:
    def __init__(self, model: nn.Module):
        self.model = model.to("cuda")

    def offload(self) -> None:
        self.model.to("cpu")

    def onload(self) -> None:
        self.model.to("cuda")


def load(name: str) -> nn.Module:
    model = AutoModel.from_pretrained(name)
    return model.half().to("cuda")
