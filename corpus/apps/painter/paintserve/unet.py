"""A small U-Net with attention at its bottom."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class ModelConfig:
    width: int
    side: int
    classes: int
    steps: int


SIZES = {
    "cpu": ModelConfig(width=16, side=16, classes=10, steps=10),
    "gpu": ModelConfig(width=256, side=64, classes=1000, steps=30),
}


class ResidualBlock(nn.Module):
    def __init__(self, inputs: int, outputs: int, time: int) -> None:
        super().__init__()
        self.norm1 = nn.GroupNorm(8, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.time = nn.Linear(time, 2 * outputs)
        self.norm2 = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: torch.Tensor, time: torch.Tensor) -> torch.Tensor:
        hidden = self.conv1(F.silu(self.norm1(x)))
        scale, shift = self.time(time)[:, :, None, None].chunk(2, dim=1)
        hidden = self.norm2(hidden) * (1 + scale) + shift
        return self.skip(x) + self.conv2(F.silu(hidden))


class AttentionBlock(nn.Module):
    def __init__(self, channels: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm = nn.GroupNorm(8, channels)
        self.qkv = nn.Linear(channels, 3 * channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, channels, height, width = x.shape
        flat = self.norm(x).flatten(2).transpose(1, 2)
        qkv = self.qkv(flat).view(rows, height * width, 3, self.heads, channels // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = F.scaled_dot_product_attention(query, key, value).transpose(1, 2).reshape(flat.shape)
        return x + self.out(context).transpose(1, 2).reshape(x.shape)


class UNet(nn.Module):
    """Noise of images (rows, 3, side, side) at noise levels (rows) for classes (rows); the last class is «none»."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width, time = config.width, 4 * config.width
        self.half = width // 2
        self.classes = nn.Embedding(config.classes + 1, time)
        self.time = nn.Sequential(nn.Linear(width, time), nn.SiLU(), nn.Linear(time, time))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        self.down = nn.ModuleList((ResidualBlock(width, width, time), ResidualBlock(width, 2 * width, time)))
        self.middle = ResidualBlock(2 * width, 2 * width, time)
        self.attention = AttentionBlock(2 * width, 4)
        self.up = nn.ModuleList((ResidualBlock(4 * width, width, time), ResidualBlock(2 * width, width, time)))
        self.norm = nn.GroupNorm(8, width)
        self.last = nn.Conv2d(width, 3, 3, padding=1)
        rates = torch.exp(torch.arange(self.half) * (-math.log(10_000.0) / self.half))
        self.register_buffer("rates", rates, persistent=False)

    def forward(self, x: torch.Tensor, level: torch.Tensor, label: torch.Tensor) -> torch.Tensor:
        angles = level[:, None] * self.rates
        time = self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(x.dtype)) + self.classes(label)
        x = self.first(x)
        kept = []
        for block in self.down:
            x = block(x, time)
            kept.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.attention(self.middle(x, time))
        for block in self.up:
            x = F.interpolate(x, scale_factor=2.0, mode="nearest")
            x = block(torch.cat((x, kept.pop()), dim=1), time)
        return self.last(F.silu(self.norm(x)))
