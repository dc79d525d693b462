"""Transposes for a convolution, for attention, and one that is not undone."""

import torch
from torch import nn


class Layer(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.conv = nn.Conv1d(width, width, 3, padding=1)

    def convolve(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        y = self.conv(x.contiguous())
        return y.transpose(1, 2)

    def attend(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        scores = torch.matmul(x, x.transpose(-1, -2))
        y = torch.matmul(scores, x.reshape(x.shape))
        return y.transpose(1, 2)

    def merge(self, x: torch.Tensor) -> torch.Tensor:
        x = x.transpose(1, 2)
        return x.reshape(x.shape[0], x.shape[1], -1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.merge(self.attend(self.convolve(x)))


class Model(nn.Module):
    def __init__(self, width: int, depth: int):
        super().__init__()
        self.layers = nn.ModuleList([Layer(width) for _ in range(depth)])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for layer in self.layers:
            x = layer(x)
        return x
