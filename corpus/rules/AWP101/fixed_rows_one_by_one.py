"""Rows of one device tensor that a loop brings to the host one by one."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    @torch.inference_mode()
    def forward(self, images: torch.Tensor, prototypes: torch.Tensor) -> list:
        boxes = self.net(images.cuda())
        corners = []
        for box, prototype in zip(boxes.round().int().tolist(), prototypes):
            left, top, right, bottom = box
            corners.append((prototype, left, top, right, bottom))
        return corners


class Encoder(nn.Module):
    def __init__(self, net: nn.Module) -> None:
        super().__init__()
        self.net = net

    @torch.inference_mode()
    def forward(self, batches: list[torch.Tensor]) -> list:
        vectors = []
        for tokens in batches:
            output = self.net(tokens.cuda())
            mask = (tokens != 0).cuda()
            output_host = output.cpu()
            mask_host = mask.cpu()
            for row in range(len(tokens)):
                vectors.append(output_host[row][mask_host[row]].detach())
        return vectors
