"""The detector: a convolutional backbone, a feature pyramid, one head for all levels, and mask prototypes."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.utils.fusion import fuse_conv_bn_eval


@dataclass(frozen=True)
class ModelConfig:
    width: int
    depth: int
    classes: int
    prototypes: int
    image: int  # height and width of the input


SIZES = {
    "cpu": ModelConfig(width=16, depth=1, classes=6, prototypes=8, image=160),
    "gpu": ModelConfig(width=96, depth=3, classes=80, prototypes=32, image=640),
}

STRIDES = (8, 16, 32)


class ConvBlock(nn.Module):
    """Convolution, batch norm, activation."""

    def __init__(self, inputs: int, outputs: int, size: int = 3, stride: int = 1) -> None:
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, size, stride, padding=size // 2, bias=False)
        self.bn = nn.BatchNorm2d(outputs)
        self.act = nn.SiLU(inplace=True)

    def fold(self) -> None:
        """Batch norm becomes a part of the convolution, once the model is in ``eval``."""
        self.conv = fuse_conv_bn_eval(self.conv, self.bn)
        self.bn = nn.Identity()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.act(self.bn(self.conv(x)))


class Residual(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.reduce = ConvBlock(width, width // 2, 1)
        self.expand = ConvBlock(width // 2, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.expand(self.reduce(x))


class Backbone(nn.Module):
    """Feature maps at strides 8, 16 and 32."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        width = config.width
        self.stem = nn.Sequential(ConvBlock(3, width, 3, 2), ConvBlock(width, 2 * width, 3, 2))
        stages = []
        inputs = 2 * width
        for outputs in (4 * width, 8 * width, 16 * width):
            blocks = [Residual(outputs) for _ in range(config.depth)]
            stages.append(nn.Sequential(ConvBlock(inputs, outputs, 3, 2), *blocks))
            inputs = outputs
        self.stages = nn.ModuleList(stages)

    def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
        x = self.stem(x)
        maps = []
        for stage in self.stages:
            x = stage(x)
            maps.append(x)
        return maps


class Pyramid(nn.Module):
    """Carries what deep levels know to the shallow ones; all levels get the same width."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        inputs = [4 * config.width, 8 * config.width, 16 * config.width]
        self.lateral = nn.ModuleList(nn.Conv2d(channels, 4 * config.width, 1) for channels in inputs)
        self.smooth = nn.ModuleList(ConvBlock(4 * config.width, 4 * config.width) for _ in inputs)

    def forward(self, maps: list[torch.Tensor]) -> list[torch.Tensor]:
        lateral = [conv(x) for conv, x in zip(self.lateral, maps)]
        for level in range(len(lateral) - 1, 0, -1):
            lateral[level - 1] = lateral[level - 1] + F.interpolate(lateral[level], scale_factor=2.0, mode="nearest")
        return [conv(x) for conv, x in zip(self.smooth, lateral)]


class Detector(nn.Module):
    """Of images (rows, 3, side, side): class scores (rows, points, classes), distances from each point to the four
    sides of its box (rows, points, 4), mask coefficients (rows, points, prototypes) and prototypes
    (rows, prototypes, side / 4, side / 4)."""

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.config = config
        width = 4 * config.width
        self.backbone = Backbone(config)
        self.pyramid = Pyramid(config)
        self.tower = nn.Sequential(ConvBlock(width, width), ConvBlock(width, width))
        self.classes = nn.Conv2d(width, config.classes, 1)
        self.boxes = nn.Conv2d(width, 4, 1)
        self.coefficients = nn.Conv2d(width, config.prototypes, 1)
        self.prototypes = nn.Sequential(
            ConvBlock(width, width), nn.Upsample(scale_factor=2.0), nn.Conv2d(width, config.prototypes, 1)
        )
        for module in self.modules():
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, nonlinearity="relu")
        for head in (self.classes, self.boxes):
            nn.init.normal_(head.weight, std=0.15 / width**0.5)
        nn.init.constant_(self.classes.bias, -3.0)  # few points hold something

    def forward(self, images: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
        levels = self.pyramid(self.backbone(images))
        scores, distances, coefficients = [], [], []
        for x, stride in zip(levels, STRIDES):
            shared = self.tower(x)
            scores.append(self.classes(shared).flatten(2).transpose(1, 2))
            distances.append(F.softplus(self.boxes(shared)).flatten(2).transpose(1, 2) * (3 * stride))
            coefficients.append(self.coefficients(shared).flatten(2).transpose(1, 2))
        return (
            torch.cat(scores, dim=1).sigmoid(),
            torch.cat(distances, dim=1),
            torch.cat(coefficients, dim=1),
            self.prototypes(levels[0]),
        )
