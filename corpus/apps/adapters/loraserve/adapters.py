"""Low-rank adapters and where they are kept."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class Adapter:
    """Two thin matrices, (dim, rank) and (rank, outputs), for every adapted layer by its name."""

    name: str
    down: dict[str, torch.Tensor]
    up: dict[str, torch.Tensor]
    scale: float


class AdapterStore:
    """All adapters, in host memory: there may be far more of them than the device could hold."""

    def __init__(self) -> None:
        self.adapters: dict[str, Adapter] = {}

    def add(self, adapter: Adapter) -> None:
        if adapter.name in self.adapters:
            raise ValueError(f"adapter {adapter.name} is there already")
        self.adapters[adapter.name] = adapter

    def names(self) -> list[str]:
        return sorted(self.adapters)

    def __getitem__(self, name: str) -> Adapter:
        return self.adapters[name]


class AdaptedLinear(nn.Module):
    """A linear layer of the base model plus what the adapter of each row adds."""

    def __init__(self, name: str, inputs: int, outputs: int, store: AdapterStore) -> None:
        super().__init__()
        self.name = name
        self.store = store
        self.base = nn.Linear(inputs, outputs, bias=False)

    def forward(self, x: torch.Tensor, names: Sequence[str]) -> torch.Tensor:
        """Of x (rows, length, inputs) and the adapter's name of each row ("" for none)."""
        result = self.base(x)
        for name in sorted(set(names)):
            if not name:
                continue
            adapter = self.store[name]
            down = adapter.down[self.name].to(x.device, x.dtype)
            up = adapter.up[self.name].to(x.device, x.dtype)
            rows = torch.tensor([row for row, other in enumerate(names) if other == name], device=x.device)
            result[rows] += (x[rows] @ down) @ up * adapter.scale
        return result


def make_adapter(name: str, shapes: dict[str, tuple[int, int]], rank: int, scale: float, seed: int) -> Adapter:
    """A random adapter in host memory; ``shapes`` gives inputs and outputs of each adapted layer."""
    generator = torch.Generator().manual_seed(seed)
    down, up = {}, {}
    for layer, (inputs, outputs) in shapes.items():
        down[layer] = torch.randn(inputs, rank, generator=generator) / inputs**0.5
        up[layer] = torch.randn(rank, outputs, generator=generator) / rank**0.5
    return Adapter(name, down, up, scale)
