"""Embedding tables as one big table, crosses of their vectors, two small perceptrons."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    tables: tuple[int, ...]  # rows of each table
    dim: int
    dense: int
    hidden: int
    per_bag: int  # ids of a feature in a request


SIZES = {
    "cpu": ModelConfig(tables=(500, 2000, 100, 5000, 50, 800), dim=16, dense=13, hidden=64, per_bag=3),
    "gpu": ModelConfig(
        tables=(200_000, 1_000_000, 5000, 2_000_000, 1000, 300_000) * 4, dim=128, dense=13, hidden=1024, per_bag=8
    ),
}


def perceptron(widths: list[int]) -> nn.Sequential:
    layers: list[nn.Module] = []
    for inputs, outputs in zip(widths, widths[1:]):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers[:-1])


class ClickModel(nn.Module):
    """Logits (rows) of dense features (rows, dense) and ids (rows, tables, per_bag), each within its own table."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        self.table = nn.EmbeddingBag(sum(config.tables), config.dim, mode="sum")
        self.bottom = perceptron([config.dense, config.hidden, config.dim])
        vectors = len(config.tables) + 1
        self.top = perceptron([config.dim + vectors * (vectors - 1) // 2, config.hidden, config.hidden // 2, 1])
        starts = torch.tensor([sum(config.tables[:number]) for number in range(len(config.tables))])
        self.register_buffer("starts", starts, persistent=False)
        row, column = torch.tril_indices(vectors, vectors, offset=-1)
        self.register_buffer("pairs", row * vectors + column, persistent=False)

    def forward(self, dense: torch.Tensor, ids: torch.Tensor) -> torch.Tensor:
        rows, tables, per_bag = ids.shape
        bags = (ids + self.starts[:, None]).view(rows * tables, per_bag)
        sparse = self.table(bags).view(rows, tables, -1)
        low = self.bottom(dense)
        vectors = torch.cat((low[:, None], sparse), dim=1)
        crosses = torch.bmm(vectors, vectors.transpose(1, 2)).flatten(1).index_select(1, self.pairs)
        return self.top(torch.cat((low, crosses), dim=1))[:, 0]
