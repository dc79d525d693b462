"""A vision encoder called for each image of a stacked batch."""

import torch
from torch import nn


class Retriever(nn.Module):
    def __init__(self, vision_model: nn.Module, proj: nn.Linear):
        super().__init__()
        self.vision_model = vision_model
        self.proj = proj

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        features = []
        for image in images:  # expect: AWP201
            features.append(self.proj(self.vision_model(image.unsqueeze(0))))
        return torch.cat(features)
