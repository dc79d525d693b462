"""The vision tower: patches of all pictures of a batch in one row, attention within each picture only."""

from __future__ import annotations

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

    def forward(self, grid: torch.Tensor) -> torch.Tensor:
        """Angles (patches, head_dim / 2) of pictures whose patches a column and a row stand in grid (pictures, 2)."""
        places = []
        for height, width in grid:
            rows = torch.arange(height, device=grid.device)[:, None].expand(height, width)
            columns = torch.arange(width, device=grid.device)[None, :].expand(height, width)
            places.append(torch.stack((self.by_token(rows), self.by_token(columns)), dim=-1))
        angles = torch.cat(places).float()[..., None] * self.inverse
        return angles.flatten(1)

    def by_token(self, x: torch.Tensor) -> torch.Tensor:
        """Patches in the order in which they are merged: the four of a token one after the other."""
        height, width = x.shape
        x = x.reshape(height // MERGE, MERGE, width // MERGE, MERGE)
        return x.permute(0, 2, 1, 3).flatten()


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    """Of x (heads, patches, head_dim)."""
    left, right = x.float().chunk(2, dim=-1)
    cos, sin = angles.cos(), angles.sin()
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1).to(x.dtype)


class VisionAttention(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        patches, dim = x.shape
        query, key, value = self.qkv(x).view(patches, 3, self.heads, -1).permute(1, 2, 0, 3).unbind(0)
        query, key = rotate(query, angles), rotate(key, angles)
        lengths = (bounds[1:] - bounds[:-1]).tolist()
        pictures = [part.split(lengths, dim=1) for part in (query, key, value)]
        context = [F.scaled_dot_product_attention(q[None], k[None], v[None])[0] for q, k, v in zip(*pictures)]
        return self.out(torch.cat(context, dim=1).transpose(0, 1).reshape(patches, dim))


class VisionLayer(nn.Module):
    def __init__(self, config: VisionConfig) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(config.dim)
        self.attention = VisionAttention(config)
        self.norm2 = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x: torch.Tensor, bounds: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
        x = x + self.attention(self.norm1(x), bounds, angles)
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

    def forward(self, patches: torch.Tensor, grid: torch.Tensor) -> torch.Tensor:
        x = self.patches(patches)
        angles = self.rotary(grid)
        bounds = F.pad((grid[:, 0] * grid[:, 1]).cumsum(0), (1, 0))
        for layer in self.layers:
            x = layer(x, bounds, angles)
        return self.merge(self.norm(x).view(x.shape[0] // (MERGE * MERGE), -1))
