"""From latents to pixels: convolutions, one attention layer, tiles for large images."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from imageserve.config import Sizes


class AttentionBlock(nn.Module):
    """Attention over all positions of a feature map, one head."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.norm = nn.GroupNorm(8, channels)
        self.query = nn.Linear(channels, channels)
        self.key = nn.Linear(channels, channels)
        self.value = nn.Linear(channels, channels)
        self.out = nn.Linear(channels, channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        rows, channels, height, width = x.shape
        flat = self.norm(x).view(rows, channels, height * width).transpose(1, 2)
        query, key, value = self.query(flat), self.key(flat), self.value(flat)
        context = F.scaled_dot_product_attention(query[:, None], key[:, None], value[:, None])[:, 0]
        return x + self.out(context).transpose(1, 2).view(rows, channels, height, width)


class Up(nn.Module):
    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm = nn.GroupNorm(8, outputs)
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.conv1(F.interpolate(x, scale_factor=2.0, mode="nearest"))
        return self.conv2(F.silu(self.norm(x)))


class Decoder(nn.Module):
    """Pixels (rows, 3, 4 * side, 4 * side) in 0 … 1."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.decoder_width
        self.first = nn.Conv2d(sizes.channels, width, 3, padding=1)
        self.attention = AttentionBlock(width)
        self.ups = nn.ModuleList((Up(width, width), Up(width, width // 2)))
        self.last = nn.Conv2d(width // 2, 3, 3, padding=1)

    def forward(self, latents: torch.Tensor) -> torch.Tensor:
        x = self.attention(self.first(latents))
        for up in self.ups:
            x = up(x)
        return torch.sigmoid(self.last(x))


def decode_tiled(decoder: Decoder, latents: torch.Tensor, tile: int) -> torch.Tensor:
    """Decode tile after tile, so that a large image needs no more memory than a small one."""
    rows = []
    for top in range(0, latents.shape[2], tile):
        tiles = [
            decoder(latents[:, :, top : top + tile, left : left + tile]) for left in range(0, latents.shape[3], tile)
        ]
        rows.append(torch.cat(tiles, dim=3))
    return torch.cat(rows, dim=2)


def decode(decoder: Decoder, latents: torch.Tensor, tile: int = 64) -> torch.Tensor:
    if latents.shape[2] > tile or latents.shape[3] > tile:
        return decode_tiled(decoder, latents, tile)
    return decoder(latents)
