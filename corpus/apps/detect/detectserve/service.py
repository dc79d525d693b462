"""The service: pictures in, lists of instances out."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import torch

from detectserve.boxes import points, to_boxes
from detectserve.model import STRIDES, Detector
from detectserve.postprocess import Limits, cut_masks, select

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
        self.model = model
        self.device = device
        self.dtype = dtype
        self.limits = limits
        self.seen: Counter[int] = Counter()

    def prepare(self, pictures: Sequence[torch.Tensor]) -> torch.Tensor:
        """One batch (rows, 3, side, side) of pictures (3, side, side) in uint8 on the host."""
        batch = torch.stack(list(pictures)).to(self.device).float() / 255.0
        mean = torch.tensor(MEAN, device=self.device).view(1, 3, 1, 1)
        spread = torch.tensor(SPREAD, device=self.device).view(1, 3, 1, 1)
        return ((batch - mean) / spread).to(self.dtype)

    @torch.inference_mode()
    def detect(self, pictures: Sequence[torch.Tensor]) -> list[list[Found]]:
        """Instances of each picture, best first."""
        side = self.model.config.image
        scores, distances, coefficients, prototypes = self.model(self.prepare(pictures))
        boxes = to_boxes(points(side, STRIDES, self.device), distances, side)
        scores = scores.float()
        results = []
        for row in range(len(pictures)):
            instances = select(scores[row], boxes[row], coefficients[row], self.limits)
            masks = cut_masks(instances, prototypes[row], side)
            box_rows = instances.boxes.cpu()
            score_rows = instances.scores.cpu()
            label_rows = instances.labels.cpu()
            results.append(self.describe(box_rows, score_rows, label_rows, masks))
        return results

    def describe(
        self, boxes: torch.Tensor, scores: torch.Tensor, labels: torch.Tensor, masks: Sequence[torch.Tensor]
    ) -> list[Found]:
        """Host tensors as plain records; boxes that hold less than a pixel are left out."""
        records = []
        for box, score, label, mask in zip(boxes.tolist(), scores.tolist(), labels.tolist(), masks):
            if mask.numel() == 0:
                continue
            pixels = int(mask.sum())
            records.append(Found(label, score, tuple(box), pixels, pixels / mask.numel()))
            self.seen[label] += 1
        return records
