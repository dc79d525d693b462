"""A long chain once a request and in a test."""

import torch
from torch import nn


class Preprocessor(nn.Module):
    def __call__(self, image: torch.Tensor) -> torch.Tensor:
        image = image.to("cuda")
        image = (image - 0.5) / 0.25 * 2.0 + 1.0
        image = torch.exp(-image) * torch.tanh(image) - torch.sqrt(image.abs())
        return image.clamp(0, 1) * 255.0 + 0.5


def test_chain():
    for step in range(64):
        x = torch.ones(4, device="cuda")
        x = torch.exp(-torch.exp(x)) * x + (1.0 - x) * torch.sigmoid(x) - torch.tanh(x)
        assert x.shape == (4,)
