"""Once a request, and in training code."""

import torch
from torch import nn


class Detector(nn.Module):
    def __init__(self, head: nn.Module):
        super().__init__()
        self.head = head

    def forward(self, features: torch.Tensor, labels: torch.Tensor = None):
        scores = self.head(features)
        if labels is not None:
            for level in range(3):
                positive = scores[labels == level]
                scores = scores + positive.mean()
        return scores


def predict(model: Detector, image: torch.Tensor, threshold: float):
    scores = model(image.to("cuda"))
    return scores[scores > threshold].tolist()
