"""Boxes that suppress each other: the loop goes on by what its passes find. What the host may do, and what it may not."""

import torch
from torch import nn


def overlap(box: torch.Tensor, boxes: torch.Tensor) -> torch.Tensor:
    low, high = torch.maximum(box[:2], boxes[:, :2]), torch.minimum(box[2:], boxes[:, 2:])
    shared = (high - low).clamp(min=0).prod(dim=1)
    area = (box[2:] - box[:2]).prod()
    return shared / (area + (boxes[:, 2:] - boxes[:, :2]).prod(dim=1) - shared)


def suppress(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Places of the boxes that stay, best first."""
    order = scores.argsort(descending=True)
    kept = []
    while order.numel() > 0:
        best = order[0]
        kept.append(best.item())
        order = order[1:]
        order = order[overlap(boxes[best], boxes[order]) <= threshold]  # expect: AWP105
    return torch.tensor(kept, dtype=torch.long, device=boxes.device)


def strongest(scores: torch.Tensor, boxes: torch.Tensor, least: float) -> tuple[torch.Tensor, torch.Tensor, int]:
    left, rounds = scores, 0
    kept = torch.zeros_like(scores)
    while left.max() > least:
        place = left.argmax()
        kept[place] = left[place]
        left = left[left < left[place]]  # expect: AWP105
        rounds += 1
    return kept, boxes * kept[:, None], rounds


def refine(boxes: torch.Tensor, head: nn.Module, least: float) -> torch.Tensor:
    """A model at every pass: no work for the host."""
    moved = boxes
    while moved.numel() > 0:
        moved = head(moved)
        moved = moved[moved[:, 0] > least]  # expect: AWP105
    return moved


def consume(boxes: torch.Tensor, scores: torch.Tensor, least: float) -> torch.Tensor:
    """The caller's own scores are written to."""
    order = scores.argsort(descending=True)
    while order.numel() > 0:
        scores[order[0]] = 0.0
        order = order[scores[order] > least]  # expect: AWP105
    return boxes


class Detector(nn.Module):
    def __init__(self, head: nn.Module):
        super().__init__()
        self.head = head

    @torch.inference_mode()
    def forward(self, images: list[torch.Tensor]) -> list[torch.Tensor]:
        found = []
        for image in images:
            boxes, scores = self.head(image.cuda())
            kept = suppress(boxes, scores, 0.5)
            left, best, _ = strongest(scores[kept], boxes[kept], 0.1)
            found.append(refine(consume(best, left, 0.2), self.head, 0.3))
        return found
