"""From raw scores and boxes to instances: threshold, suppression a class, the best of all, masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from detectserve.boxes import overlaps


@dataclass(frozen=True)
class Limits:
    score: float = 0.3
    overlap: float = 0.5
    candidates: int = 60  # a class, before suppression
    instances: int = 20  # an image, after it


def select(
    scores: torch.Tensor, boxes: torch.Tensor, coefficients: torch.Tensor, limits: Limits
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Of scores (rows, points, classes), boxes (rows, points, 4) and coefficients (rows, points, prototypes) the best
    ``limits.instances`` a row: boxes, scores, labels, coefficients. Places that hold none have score 0.

    Shapes do not depend on what is found: nothing waits for the device, and all of it can be recorded as a graph.
    """
    rows, points, classes = scores.shape
    count = min(limits.candidates, points)
    values, index = scores.transpose(1, 2).topk(count, dim=2)  # (rows, classes, count), best first
    found = boxes[:, None].expand(rows, classes, points, 4).gather(2, index[..., None].expand(-1, -1, -1, 4))
    over = ~(overlaps(found) <= limits.overlap)
    keep = values > limits.score
    behind = torch.ones(count, count, dtype=torch.bool, device=scores.device).triu(1)
    over &= behind
    for place in range(count):  # each that stays takes out those behind it that it overlaps
        keep &= ~(over[:, :, place] & keep[:, :, place : place + 1])
    kept = torch.where(keep, values, 0.0).flatten(1)
    best, order = kept.topk(min(limits.instances, kept.shape[1]), dim=1)
    point = index.flatten(1).gather(1, order)
    return (
        boxes.gather(1, point[..., None].expand(-1, -1, 4)),
        best,
        order // count,
        coefficients.gather(1, point[..., None].expand(-1, -1, coefficients.shape[2])),
    )


def measure_masks(
    boxes: torch.Tensor, coefficients: torch.Tensor, prototypes: torch.Tensor, side: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Pixels of the mask of each instance within its box, and pixels of the box, both (rows, instances)."""
    masks = torch.sigmoid(torch.einsum("rip,rphw->rihw", coefficients, prototypes))
    masks = F.interpolate(masks.float(), size=(side, side), mode="bilinear", align_corners=False)
    left, top, right, bottom = boxes.round().int()[..., None].unbind(2)
    places = torch.arange(side, device=boxes.device, dtype=torch.int32)
    across = (places >= left) & (places < right)
    down = (places >= top) & (places < bottom)
    pixels = ((masks > 0.5) & across[:, :, None] & down[..., None]).sum(dim=(2, 3))
    return pixels, across.sum(dim=2) * down.sum(dim=2)
