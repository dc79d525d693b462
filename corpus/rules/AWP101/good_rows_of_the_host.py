"""Rows of what lies on the host already, and one copy of all of them."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    @torch.inference_mode()
    def forward(self, images: torch.Tensor) -> list:
        boxes = self.net(images.cuda()).cpu()
        corners = []
        for box in boxes:
            corners.append(box.round().int().tolist())
        return corners


def rows(table: torch.Tensor) -> list:
    table = table.cpu()
    return [table[row].tolist() for row in range(len(table))]
