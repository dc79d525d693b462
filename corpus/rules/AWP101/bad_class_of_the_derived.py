"""A base class makes its decoder of a class that the derived ones name: what they name runs."""

from typing import ClassVar

import torch
from torch import nn


class Decoder:
    def decode(self, scores: torch.Tensor, texts: list[str]) -> list[list[float]]:
        return [self._row(scores, row, len(texts[row])) for row in range(scores.shape[0])]

    def _row(self, scores: torch.Tensor, number: int, count: int) -> list[float]:
        found = []
        for place in range(count):
            found.append(scores[number, place].item())  # expect: AWP101
        return found


class Base(nn.Module):
    decoder_class: ClassVar[type | None] = None

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network
        self.decoder = self.decoder_class()

    @torch.no_grad()
    def predict(self, batch: torch.Tensor, texts: list[str]) -> list[list[float]]:
        return self.decoder.decode(self.network(batch), texts)


class Tagger(Base):
    decoder_class = Decoder
