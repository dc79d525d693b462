"""Boxes suppressed image by image, where one call serves all."""

import torch
import torchvision
from torch import nn


class Detector(nn.Module):
    def __init__(self, backbone: nn.Module, iou: float):
        super().__init__()
        self.backbone = backbone
        self.iou = iou

    @torch.inference_mode()
    def forward(self, images: torch.Tensor) -> list:
        predictions = self.backbone(images)
        outputs = []
        for row in predictions:
            kept = torchvision.ops.nms(row[:, :4], row[:, 4], self.iou)  # expect: AWP110
            outputs.append(row[kept])
        return outputs
