"""Object detection with a RetinaNet of torchvision."""

from __future__ import annotations

import torch
from common import options, serve
from torchvision.models.detection import retinanet_resnet50_fpn

given = options(requests=30)
model = retinanet_resnet50_fpn(weights=None, weights_backbone=None, score_thresh=0.005).to(given.device).eval()


@torch.inference_mode()
def answer(number: int) -> torch.Tensor:
    source = torch.Generator().manual_seed(number)
    pictures = torch.rand(given.of(1, 4), 3, given.of(128, 640), given.of(128, 640), generator=source)
    found = model(list(pictures.to(given.device)))
    return torch.cat([picture["scores"] for picture in found])


if __name__ == "__main__":
    serve(given, answer)
