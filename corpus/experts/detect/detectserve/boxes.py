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


def overlaps(boxes: torch.Tensor) -> torch.Tensor:
    """Intersection over union (..., count, count) of each of the boxes (..., count, 4) with each."""
    one, other = boxes[..., :, None, :], boxes[..., None, :, :]
    sides = (torch.minimum(one[..., 2:], other[..., 2:]) - torch.maximum(one[..., :2], other[..., :2])).clamp(min=0.0)
    shared = sides[..., 0] * sides[..., 1]
    return shared / (area(one) + area(other) - shared).clamp(min=1e-6)
