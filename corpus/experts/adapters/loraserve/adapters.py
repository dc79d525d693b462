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

    def numbers(self, names: Sequence[str]) -> list[int]:
        """The place of each adapter in the layers' stacks; "" has a place too, of zeros."""
        places = {name: number for number, name in enumerate(["", *self.names()])}
        return [places[name] for name in names]


class AdaptedLinear(nn.Module):
    """A linear layer of the base model plus what the adapter of each row adds."""

    def __init__(self, name: str, inputs: int, outputs: int, store: AdapterStore) -> None:
        super().__init__()
        self.name = name
        self.store = store
        self.base = nn.Linear(inputs, outputs, bias=False)
        self.down: torch.Tensor | None = (
            None  # (adapters + 1, inputs, rank), on the device, made when they are all there
        )
        self.up: torch.Tensor | None = None
        self.scales: torch.Tensor | None = None

    def stack(self) -> None:
        """Bring all adapters of this layer to the device, once."""
        weight = self.base.weight
        adapters = [self.store[name] for name in self.store.names()]
        down = [adapter.down[self.name] for adapter in adapters]
        up = [adapter.up[self.name] for adapter in adapters]
        self.down = torch.stack([torch.zeros_like(down[0]), *down]).to(weight.device, weight.dtype)
        self.up = torch.stack([torch.zeros_like(up[0]), *up]).to(weight.device, weight.dtype)
        scales = torch.tensor([0.0, *[adapter.scale for adapter in adapters]])
        self.scales = scales.to(weight.device, weight.dtype)[:, None, None]

    def forward(self, x: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Of x (rows, length, inputs) and the place of each row's adapter (rows,)."""
        assert self.down is not None and self.up is not None and self.scales is not None
        return self.base(x) + (x @ self.down[numbers]) @ self.up[numbers] * self.scales[numbers]


def make_adapter(name: str, shapes: dict[str, tuple[int, int]], rank: int, scale: float, seed: int) -> Adapter:
    """A random adapter in host memory; ``shapes`` gives inputs and outputs of each adapted layer."""
    generator = torch.Generator().manual_seed(seed)
    down, up = {}, {}
    for layer, (inputs, outputs) in shapes.items():
        down[layer] = torch.randn(inputs, rank, generator=generator) / inputs**0.5
        up[layer] = torch.randn(rank, outputs, generator=generator) / rank**0.5
    return Adapter(name, down, up, scale)
