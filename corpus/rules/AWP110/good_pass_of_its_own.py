"""Boxes that a pass gathers in a loop of its own: the calls of all passes could not be one."""

import torch
import torchvision
from torch import nn


class Segmenter(nn.Module):
    def __init__(self, backbone: nn.Module, head: nn.Module, iou: float):
        super().__init__()
        self.backbone = backbone
        self.head = head
        self.iou = iou

    @torch.inference_mode()
    def forward(self, crops: torch.Tensor, points: torch.Tensor) -> list:
        outputs = []
        for crop in crops:
            features = self.backbone(crop[None])
            found = []
            for part in points.split(64):
                found.append(self.head(features, part))
            boxes = torch.cat(found)
            kept = torchvision.ops.nms(boxes[:, :4], boxes[:, 4], self.iou)
            outputs.append(boxes[kept])
        return outputs
