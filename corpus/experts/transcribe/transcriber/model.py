"""A convolutional front end, a few encoder layers, a CTC head."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn

from transcriber.features import BANDS

ALPHABET = "_ abcdefghijklmnopqrstuvwxyz'"  # the first one is the blank


@dataclass(frozen=True)
class ModelConfig:
    dim: int
    layers: int
    heads: int


SIZES = {"cpu": ModelConfig(dim=96, layers=2, heads=4), "gpu": ModelConfig(dim=1024, layers=24, heads=16)}


class EncoderLayer(nn.Module):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.norm1 = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.norm2 = nn.LayerNorm(config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)

    def forward(self, x: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        context = F.scaled_dot_product_attention(query, key, value, attn_mask=visible)
        x = x + self.out(context.transpose(1, 2).reshape(rows, length, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class SpeechModel(nn.Module):
    """Scores (rows, length, letters) of log-mel frames (rows, frames, bands); two frames make one step.

    ``lengths`` (rows,) are the frames that a row has; what lies behind is zero and has no say.
    """

    def __init__(self, config: ModelConfig) -> None:
        super().__init__()
        self.conv1 = nn.Conv1d(BANDS, config.dim, 3, padding=1)
        self.conv2 = nn.Conv1d(config.dim, config.dim, 3, stride=2, padding=1)
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.head = nn.Linear(config.dim, len(ALPHABET))

    def forward(self, frames: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        inside = (torch.arange(frames.shape[1], device=frames.device) < lengths[:, None])[:, None]
        x = F.gelu(self.conv1(frames.transpose(1, 2))) * inside  # as if each row ended where its padding begins
        x = F.gelu(self.conv2(x)).transpose(1, 2)
        steps = (lengths + 1) // 2
        visible = (torch.arange(x.shape[1], device=x.device) < steps[:, None])[:, None, None]
        for layer in self.layers:
            x = layer(x, visible)
        return self.head(self.norm(x))
