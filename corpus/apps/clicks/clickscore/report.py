"""What is made of the scores, all on the host."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch


@dataclass
class Report:
    """Running figures over all batches."""

    bins: int = 10
    rows: int = 0
    chosen: int = 0
    total: float = 0.0
    histogram: list[int] = field(default_factory=lambda: [0] * 10)

    def add(self, scores: torch.Tensor, threshold: float) -> list[int]:
        """Take up scores (rows) in host memory; the places of those worth showing."""
        self.rows += scores.numel()
        self.total += scores.sum().item()
        for number, count in enumerate(torch.histc(scores, self.bins, 0.0, 1.0).int().tolist()):
            self.histogram[number] += count
        shown = (scores > threshold).nonzero().flatten().tolist()
        if (scores != scores).any():
            raise FloatingPointError("a score is not a number")
        self.chosen += len(shown)
        return shown

    def line(self) -> str:
        bars = " ".join(str(count) for count in self.histogram)
        return f"{self.rows} rows, mean {self.total / max(self.rows, 1):.4f}, {self.chosen} shown, histogram {bars}"
