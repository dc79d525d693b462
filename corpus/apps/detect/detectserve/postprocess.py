"""From raw scores and boxes to instances: threshold, suppression a class, the best of all, masks."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F

from detectserve.boxes import overlap


@dataclass(frozen=True)
class Limits:
    score: float = 0.3
    overlap: float = 0.5
    candidates: int = 60  # a class, before suppression
    instances: int = 20  # an image, after it


@dataclass
class Instances:
    """What was found in one image; tensors lie on the device until ``host`` is called."""

    boxes: torch.Tensor
    scores: torch.Tensor
    labels: torch.Tensor
    coefficients: torch.Tensor

    def __len__(self) -> int:
        return self.boxes.shape[0]


def suppress(boxes: torch.Tensor, scores: torch.Tensor, threshold: float) -> torch.Tensor:
    """Positions of the boxes that stay, best first: each takes out those that overlap it too much."""
    order = scores.argsort(descending=True, stable=True)
    kept = []
    while order.numel() > 0:
        best = order[0]
        kept.append(best.item())
        rest = order[1:]
        order = rest[overlap(boxes[best], boxes[rest]) <= threshold]
    return torch.tensor(kept, dtype=torch.long, device=boxes.device)


def select(scores: torch.Tensor, boxes: torch.Tensor, coefficients: torch.Tensor, limits: Limits) -> Instances:
    """Instances of one image: scores (points, classes), boxes (points, 4), coefficients (points, prototypes)."""
    above = scores > limits.score
    found_boxes, found_scores, found_labels, found_coefficients = [], [], [], []
    for label in range(scores.shape[1]):
        index = above[:, label].nonzero().squeeze(1)
        if index.numel() == 0:
            continue
        best = scores[index, label].topk(min(limits.candidates, index.numel()))
        index = index[best.indices]
        index = index[suppress(boxes[index], best.values, limits.overlap)]
        found_boxes.append(boxes[index])
        found_scores.append(scores[index, label])
        found_labels.append(torch.full_like(index, label))
        found_coefficients.append(coefficients[index])
    if not found_boxes:
        none = scores.new_zeros(0)
        return Instances(boxes[:0], none, none.long(), coefficients[:0])
    merged = torch.cat(found_scores)
    best = merged.topk(min(limits.instances, merged.numel()))
    return Instances(
        torch.cat(found_boxes)[best.indices],
        best.values,
        torch.cat(found_labels)[best.indices],
        torch.cat(found_coefficients)[best.indices],
    )


def cut_masks(instances: Instances, prototypes: torch.Tensor, side: int) -> list[torch.Tensor]:
    """Masks (height, width) of bool on the host, one an instance, each as large as its box."""
    masks = []
    for box, coefficient in zip(instances.boxes, instances.coefficients):
        left, top, right, bottom = box.round().int().tolist()
        mask = torch.sigmoid(torch.einsum("p,phw->hw", coefficient, prototypes))
        mask = F.interpolate(mask[None, None].float(), size=(side, side), mode="bilinear", align_corners=False)[0, 0]
        masks.append((mask[top:bottom, left:right] > 0.5).cpu())
    return masks
