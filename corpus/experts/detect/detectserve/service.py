"""The service: pictures in, lists of instances out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from captured import Captured
from detectserve.boxes import points, to_boxes
from detectserve.model import STRIDES, ConvBlock, Detector
from detectserve.postprocess import Limits, measure_masks, select

MEAN = [0.485, 0.456, 0.406]
SPREAD = [0.229, 0.224, 0.225]


@dataclass(frozen=True)
class Found:
    """One instance, all on the host."""

    label: int
    score: float
    box: tuple[float, ...]
    pixels: int  # of its mask
    covered: float  # share of the box that the mask fills


class DetectionService:
    def __init__(self, model: Detector, device: torch.device, dtype: torch.dtype, limits: Limits) -> None:
        for module in model.modules():
            if isinstance(module, ConvBlock):
                module.fold()
        self.model = model.to(memory_format=torch.channels_last)
        self.device = device
        self.dtype = dtype
        self.limits = limits
        self.seen: Counter[int] = Counter()
        self.mean = torch.tensor(MEAN, device=device).view(1, 3, 1, 1)
        self.spread = torch.tensor(SPREAD, device=device).view(1, 3, 1, 1)
        self.centres = points(model.config.image, STRIDES, device)
        self.find = Captured(self._find)

    def prepare(self, pictures: Sequence[torch.Tensor]) -> torch.Tensor:
        """One batch (rows, 3, side, side) of pictures (3, side, side) in uint8 on the host."""
        batch = torch.stack(list(pictures))
        return (batch.pin_memory() if self.device.type == "cuda" else batch).to(self.device, non_blocking=True)

    def _find(self, pictures: torch.Tensor) -> torch.Tensor:
        """Instances (rows, count, 8): box, score, label, pixels of the mask, pixels of the box."""
        side = self.model.config.image
        images = ((pictures.float() / 255.0 - self.mean) / self.spread).to(self.dtype)
        images = images.contiguous(memory_format=torch.channels_last)
        scores, distances, coefficients, prototypes = self.model(images)
        boxes = to_boxes(self.centres, distances, side)
        boxes, best, labels, coefficients = select(scores.float(), boxes, coefficients, self.limits)
        pixels, area = measure_masks(boxes, coefficients, prototypes, side)
        numbers = torch.stack((best, labels.float(), pixels.float(), area.float()), dim=2)
        return torch.cat((boxes, numbers), dim=2)

    @torch.inference_mode()
    def detect(self, pictures: Sequence[torch.Tensor]) -> list[list[Found]]:
        """Instances of each picture, best first."""
        found = self.find((self.prepare(pictures),)).tolist()  # the one read of a batch
        return [self.describe(rows) for rows in found]

    def describe(self, rows: Sequence[Sequence[float]]) -> list[Found]:
        """Rows of numbers as plain records; boxes that hold less than a pixel are left out."""
        records = []
        for *box, score, label, pixels, area in rows:
            if score == 0.0 or area == 0.0:
                continue
            records.append(Found(int(label), score, tuple(box), int(pixels), pixels / area))
            self.seen[int(label)] += 1
        return records
