"""Methods that keep no gradients since they change weights or judge a model: no request waits for them."""

import torch
from torch import nn


class Extractor(nn.Module):
    def __init__(self, network: nn.Linear) -> None:
        super().__init__()
        self.network = network

    @torch.no_grad()
    def prune_rows(self, limit: float) -> int:
        count = 0
        for row in self.network.weight:
            if row.norm().item() < limit:
                row.zero_()
                count += 1
        return count

    @torch.no_grad()
    def evaluate_texts(self, texts: list[str], ids: torch.Tensor) -> float:
        total = 0.0
        for row in range(len(texts)):
            total += self.network(ids[row]).max().item()
        return total
