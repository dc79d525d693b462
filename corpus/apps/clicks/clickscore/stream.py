"""Batches on their way to the device while the one before is scored, and scores on their way back."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch

from clickscore.model import ClickModel


@dataclass(frozen=True)
class Batch:
    """Features on the host: dense (rows, dense) and ids (rows, tables, per_bag)."""

    dense: torch.Tensor
    ids: torch.Tensor

    def pinned(self) -> Batch:
        return Batch(self.dense.pin_memory(), self.ids.pin_memory())


class Slot:
    """Where one batch lives on the device, and its scores in pinned memory on the host."""

    def __init__(self, rows: int, model: ClickModel, device: torch.device) -> None:
        config = model.config
        cuda = device.type == "cuda"
        self.dense = torch.empty(rows, config.dense, device=device, dtype=model.table.weight.dtype)
        self.ids = torch.empty(rows, len(config.tables), config.per_bag, device=device, dtype=torch.long)
        self.scores = torch.empty(rows, pin_memory=cuda)
        self.ready = torch.cuda.Event() if cuda else None


class Scorer:
    """Scores batches of one size in order. Two slots take turns: while the host hands out the scores of one, the
    device works on the other."""

    def __init__(self, model: ClickModel, device: torch.device, rows: int) -> None:
        self.model = model
        self.device = device
        self.slots = [Slot(rows, model, device) for _ in range(2)]

    @torch.inference_mode()
    def submit(self, slot: Slot, batch: Batch) -> None:
        slot.dense.copy_(batch.dense, non_blocking=True)
        slot.ids.copy_(batch.ids, non_blocking=True)
        scores = self.model(slot.dense, slot.ids).float().sigmoid()
        slot.scores.copy_(scores, non_blocking=True)
        if slot.ready is not None:
            slot.ready.record()

    def collect(self, slot: Slot) -> torch.Tensor:
        """Scores (rows) on the host; the one place where the host waits."""
        if slot.ready is not None:
            slot.ready.synchronize()
        return slot.scores.clone()

    def run(self, batches: Sequence[Batch]) -> Iterator[torch.Tensor]:
        """Scores of each batch, on the host."""
        before: Slot | None = None
        for number, batch in enumerate(batches):
            slot = self.slots[number % 2]
            self.submit(slot, batch)
            if before is not None:
                yield self.collect(before)
            before = slot
        if before is not None:
            yield self.collect(before)
