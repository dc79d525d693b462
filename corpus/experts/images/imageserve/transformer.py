"""The denoiser: patches of the latent image and the prompt in one sequence, modulated by the time step."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn

from imageserve.config import Sizes


def rotary_table(side: int, head_dim: int) -> torch.Tensor:
    """Angles (side * side, head_dim / 2): half for the row of a patch, half for its column."""
    quarter = head_dim // 4
    frequencies = 100.0 ** (-torch.arange(quarter, dtype=torch.float32) / quarter)
    rows, columns = torch.meshgrid(torch.arange(side), torch.arange(side), indexing="ij")
    angles = [axis.flatten()[:, None] * frequencies for axis in (rows, columns)]
    return torch.cat(angles, dim=-1)


class RotaryEmbedding:
    """Rotary factors for the image part of the sequence; the prompt is not rotated."""

    def __init__(self, side: int, head_dim: int) -> None:
        angles = rotary_table(side, head_dim)
        self.cos = angles.cos()
        self.sin = angles.sin()

    def to(self, x: torch.Tensor) -> None:
        """Where ``x`` is and of its type; nothing happens if they are."""
        self.cos, self.sin = self.cos.to(x.device, x.dtype), self.sin.to(x.device, x.dtype)

    def __call__(self, x: torch.Tensor, text: int) -> torch.Tensor:
        cos, sin = self.cos, self.sin
        prompt, image = x[:, :, :text], x[:, :, text:]
        left, right = image.chunk(2, dim=-1)
        return torch.cat((prompt, torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)), dim=2)


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.norm1 = nn.LayerNorm(dim, elementwise_affine=False)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim, elementwise_affine=False)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)
        self.modulation = nn.Linear(dim, 6 * dim)

    def forward(self, x: torch.Tensor, time: torch.Tensor, rotary: RotaryEmbedding, text: int) -> torch.Tensor:
        rows, length, dim = x.shape
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(time)[:, None].chunk(6, dim=-1)
        qkv = self.qkv(self.norm1(x) * (1 + scale1) + shift1).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = F.scaled_dot_product_attention(rotary(query, text), rotary(key, text), value)
        x = x + gate1 * self.out(context.transpose(1, 2).reshape(rows, length, dim))
        return x + gate2 * self.down(F.gelu(self.up(self.norm2(x) * (1 + scale2) + shift2)))


class DiffusionTransformer(nn.Module):
    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.sizes = sizes
        width = sizes.channels * sizes.patch**2
        self.patches = nn.Linear(width, sizes.dim)
        self.prompt = nn.Linear(sizes.text_dim, sizes.dim)
        self.pad_token = nn.Parameter(torch.zeros(sizes.dim))
        self.time = nn.Sequential(nn.Linear(sizes.dim, sizes.dim), nn.SiLU(), nn.Linear(sizes.dim, sizes.dim))
        self.layers = nn.ModuleList(Layer(sizes.dim, sizes.heads) for _ in range(sizes.layers))
        self.norm = nn.LayerNorm(sizes.dim)
        self.head = nn.Linear(sizes.dim, width)
        self.rotary = RotaryEmbedding(sizes.side // sizes.patch, sizes.dim // sizes.heads)
        exponents = torch.arange(sizes.dim // 2, dtype=torch.float32) / (sizes.dim // 2)
        self.register_buffer("frequencies", torch.exp(-math.log(10_000.0) * exponents), persistent=False)

    def time_embedding(self, timestep: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
        angles = timestep.float()[:, None] * self.frequencies
        return self.time(torch.cat((angles.cos(), angles.sin()), dim=-1).to(dtype))

    def forward(
        self, latents: torch.Tensor, timestep: torch.Tensor, prompt: torch.Tensor, padding: torch.Tensor
    ) -> torch.Tensor:
        """Noise of the same shape as ``latents`` (rows, channels, side, side); ``padding`` is True at padding."""
        rows, channels, side, _ = latents.shape
        patch, grid = self.sizes.patch, side // self.sizes.patch
        image = latents.view(rows, channels, grid, patch, grid, patch).permute(0, 2, 4, 1, 3, 5)
        image = self.patches(image.reshape(rows, grid * grid, -1))
        text = self.prompt(prompt)
        text = torch.where(padding[..., None], self.pad_token, text)
        x = torch.cat((text, image), dim=1)
        time = self.time_embedding(timestep.expand(rows), x.dtype)
        self.rotary.to(x)
        for layer in self.layers:
            x = layer(x, time, self.rotary, text.shape[1])
        x = self.head(self.norm(x[:, text.shape[1] :]))
        x = x.view(rows, grid, grid, channels, patch, patch).permute(0, 3, 1, 4, 2, 5)
        return x.reshape(rows, channels, side, side)
