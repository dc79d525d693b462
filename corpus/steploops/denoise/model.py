"""A small diffusion transformer with text conditioning."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class DiTConfig:
    channels: int = 4
    side: int = 16
    patch: int = 2
    dim: int = 96
    layers: int = 3
    heads: int = 4
    text_dim: int = 64


SIZES = {
    "cpu": DiTConfig(),
    "gpu": DiTConfig(side=32, dim=1024, layers=24, heads=16, text_dim=768),
}


def timestep_embedding(timestep: torch.Tensor, dim: int) -> torch.Tensor:
    """Sines and cosines of (rows,) timesteps, (rows, dim)."""
    half = dim // 2
    frequencies = torch.exp(-math.log(10_000.0) * torch.arange(half, device=timestep.device) / half)
    angles = timestep[:, None].float() * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=-1)


class Block(nn.Module):
    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.dim, elementwise_affine=False)
        self.norm2 = nn.LayerNorm(config.dim)
        self.norm3 = nn.LayerNorm(config.dim, elementwise_affine=False)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.query = nn.Linear(config.dim, config.dim)
        self.context = nn.Linear(config.text_dim, 2 * config.dim)
        self.out1 = nn.Linear(config.dim, config.dim)
        self.out2 = nn.Linear(config.dim, config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)
        self.modulation = nn.Linear(config.dim, 6 * config.dim)

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def attend(self, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        mixed = F.scaled_dot_product_attention(self.split(query), self.split(key), self.split(value))
        return mixed.transpose(1, 2).flatten(2)

    def forward(self, x: torch.Tensor, time: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(F.silu(time))[:, None].chunk(6, dim=-1)
        query, key, value = self.qkv(self.norm1(x) * (1 + scale1) + shift1).chunk(3, dim=-1)
        x = x + gate1 * self.out1(self.attend(query, key, value))
        key, value = self.context(text).chunk(2, dim=-1)
        x = x + self.out2(self.attend(self.query(self.norm2(x)), key, value))
        hidden = self.norm3(x) * (1 + scale2) + shift2
        return x + gate2 * self.down(F.gelu(self.up(hidden), approximate="tanh"))


class DiffusionTransformer(nn.Module):
    def __init__(self, config: DiTConfig) -> None:
        super().__init__()
        self.config = config
        cells = (config.side // config.patch) ** 2
        self.patches = nn.Conv2d(config.channels, config.dim, config.patch, stride=config.patch)
        self.positions = nn.Parameter(torch.randn(1, cells, config.dim) * 0.02)
        self.time = nn.Sequential(nn.Linear(config.dim, config.dim), nn.SiLU(), nn.Linear(config.dim, config.dim))
        self.blocks = nn.ModuleList(Block(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.out = nn.Linear(config.dim, config.patch**2 * config.channels)

    def forward(self, latents: torch.Tensor, timestep: torch.Tensor, text: torch.Tensor) -> torch.Tensor:
        """Noise of latents (rows, channels, side, side) at (rows,) timesteps, given text (rows, words, text_dim)."""
        x = self.patches(latents).flatten(2).transpose(1, 2) + self.positions
        time = self.time(timestep_embedding(timestep, self.config.dim).to(x.dtype))
        for block in self.blocks:
            x = block(x, time, text)
        x = self.out(self.norm(x))
        rows, side, patch = x.shape[0], self.config.side // self.config.patch, self.config.patch
        x = x.view(rows, side, side, patch, patch, self.config.channels)
        return x.permute(0, 5, 1, 3, 2, 4).reshape(rows, self.config.channels, self.config.side, self.config.side)
