"""Geometry of boxes, given as left, top, right, bottom in pixels."""

from __future__ import annotations

import torch


def points(side: int, strides: tuple[int, ...], device: torch.device) -> torch.Tensor:
    """Centres (points, 2) of all cells of all levels, x before y."""
    centres = []
    for stride in strides:
        steps = torch.arange(side // stride, device=device, dtype=torch.float32) * stride + stride / 2
        y, x = torch.meshgrid(steps, steps, indexing="ij")
        centres.append(torch.stack((x.flatten(), y.flatten()), dim=1))
    return torch.cat(centres)


def to_boxes(centres: torch.Tensor, distances: torch.Tensor, side: int) -> torch.Tensor:
    """Boxes (rows, points, 4) inside the image."""
    distances = distances.float()
    corners = torch.cat((centres - distances[..., :2], centres + distances[..., 2:]), dim=-1)
    return corners.clamp(0.0, float(side))


def area(boxes: torch.Tensor) -> torch.Tensor:
    return (boxes[..., 2] - boxes[..., 0]) * (boxes[..., 3] - boxes[..., 1])


def overlap(box: torch.Tensor, others: torch.Tensor) -> torch.Tensor:
    """Intersection over union of one box (4,) with others (count, 4)."""
    corner = torch.maximum(box[:2], others[:, :2])
    opposite = torch.minimum(box[2:], others[:, 2:])
    sides = (opposite - corner).clamp(min=0.0)
    shared = sides[:, 0] * sides[:, 1]
    return shared / (area(box) + area(others) - shared).clamp(min=1e-6)
