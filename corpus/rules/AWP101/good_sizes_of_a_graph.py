"""Sizes of a graph that callers may give, or that the graph keeps once it knows them."""

import torch
from torch import nn


class Graph:
    def __init__(self, index: torch.Tensor):
        self.index = index
        self._size = None

    def size(self) -> int:
        size = self._size
        if size is not None:
            return size
        size = int(self.index.max()) + 1  # expect[low]: AWP101
        self._size = size
        return size


def count(index: torch.Tensor, nodes: int | None = None) -> int:
    if nodes is not None:
        return nodes
    elif index.dim() == 2:
        return int(index.max()) + 1  # expect[low]: AWP101
    return index.shape[0]


def spread(index: torch.Tensor, sizes: tuple | None = None) -> torch.Tensor:
    if sizes is None:
        sizes = (None, None)
    rows, columns = sizes
    if rows is None:
        rows = int(index[0].max()) + 1  # expect[low]: AWP101
    if columns is None:
        columns = int(index[1].max()) + 1  # expect[low]: AWP101
    return index.new_zeros(rows, columns)


class Convolution(nn.Module):
    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        return spread(index)[: count(index), : Graph(index).size()] @ x


class Tower(nn.Module):
    def __init__(self, layers: int):
        super().__init__()
        self.layers = nn.ModuleList(Convolution() for _ in range(layers))

    def forward(self, x: torch.Tensor, index: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x, index = layer(x, index), index.flip(0)
        return x
