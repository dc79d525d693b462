"""The vision tower: patches of all pictures of a batch in one row, attention within each picture only."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import torch
import torch.nn.functional as F
from torch import nn

from visionprefill.config import MERGE, PATCH, VisionConfig


class VisionRotary(nn.Module):
    """Rotary angles from the row and the column of each patch."""

    def __init__(self, head_dim: int) -> None:
        super().__init__()
        quarter = head_dim // 4
        inverse = 10_000.0 ** (-torch.arange(quarter, dtype=torch.float32) / quarter)
        self.register_buffer("inverse", inverse, persistent=False)

    def forward(self, grid: Sequence[tuple[int, int]]) -> torch.Tensor:
        """Angles (patches, head_dim / 2) of pictures with so many patches a column and a row."""
        places = torch.cat([places_of(height, width) for height, width in grid]).to(self.inverse.device)
        angles = places.float()[..., None] * self.inverse
        return angles.flatten(1)


@cache
def places_of(height: int, width: int) -> torch.Tensor:
    """Row and column of each patch (patches, 2) in the order in which they are merged, on the host."""
    rows = torch.arange(height)[:, None].expand(height, width)
    columns = torch.arange(width)[None, :].expand(height, width)
    return torch.stack((by_token(rows), by_token(columns)), dim=-1)


def by_token(x: torch.Tensor) -> torch.Tensor:
    """Patches in the order in which they are merged: the four of a token one after the other."""
    height, width = x.shape
    x = x.reshape(height // MERGE, MERGE, width // MERGE, MERGE)
    return x.permute(0, 2, 1, 3).flatten()


class Packing:
    """Where the patches of each picture stand in the one row of all, and back."""

    def __init__(self, lengths: Sequence[int], device: torch.device) -> None:
        longest = max(lengths)
        starts = [sum(lengths[:number]) for number in range(len(lengths))]
        take = [[start + min(place, length - 1) for place in range(longest)] for start, length in zip(starts, lengths)]
        give = [number * longest + place for number, length in enumerate(lengths) for place in range(length)]
        self.take = torch.tensor(take).to(device)  # (pictures, longest)
        self.give = torch.tensor(give).to(device)  # (patches,)
        self.visible = (torch.arange(longest, device=device) < torch.tensor(lengths).to(device)[:, None])[:, None, None]


def rotate(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Of x (heads, patches, head_dim)."""
    left, right = x.float().chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


class VisionAttention(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)

    def forward(self, x: torch.Tensor, packing: Packing, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        patches, dim = x.shape
        query, key, value = self.qkv(x).view(patches, 3, self.heads, -1).permute(1, 2, 0, 3).unbind(0)
        query, key = rotate(query, cos, sin), rotate(key, cos, sin)
        query, key, value = (part[:, packing.take].transpose(0, 1) for part in (query, key, value))
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=packing.visible)
        return self.out(context.transpose(1, 2).reshape(-1, dim)[packing.give])


class VisionLayer(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.dim)
        self.attention = VisionAttention(config)
        self.norm2 = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x: torch.Tensor, packing: Packing, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), packing, cos, sin)
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class VisionTower(nn.Module):
    """Features (tokens, out) of patches (patches, 3 * PATCH * PATCH); four neighbours make one token."""

    def __init__(self, config: VisionConfig, out: int) -> None:
        super().__init__()
        self.patches = nn.Linear(3 * PATCH * PATCH, config.dim)
        self.rotary = VisionRotary(config.dim // config.heads)
        self.layers = nn.ModuleList(VisionLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.merge = nn.Sequential(nn.Linear(MERGE * MERGE * config.dim, out), nn.GELU(), nn.Linear(out, out))

    def forward(self, patches: torch.Tensor, grid: Sequence[tuple[int, int]]) -> torch.Tensor:
        x = self.patches(patches)
        angles = self.rotary(grid)
        cos, sin = angles.cos(), angles.sin()
        packing = Packing([height * width for height, width in grid], x.device)
        for layer in self.layers:
            x = layer(x, packing, cos, sin)
        return self.merge(self.norm(x).view(x.shape[0] // (MERGE * MERGE), -1))
