"""Sizes of the two towers."""

from __future__ import annotations

from dataclasses import dataclass

PATCH = 14
MERGE = 2  # so many patches in each direction become one token of the language model


@dataclass(frozen=True)
class VisionConfig:
    dim: int
    layers: int
    heads: int


@dataclass(frozen=True)
class TextConfig:
    vocab_size: int
    dim: int
    layers: int
    heads: int
    kv_heads: int
    hidden: int
    max_length: int


@dataclass(frozen=True)
class Config:
    vision: VisionConfig
    text: TextConfig
    sides: tuple[int, ...]  # heights and widths of pictures, in pixels


SIZES = {
    "cpu": Config(
        VisionConfig(dim=64, layers=3, heads=4),
        TextConfig(vocab_size=300, dim=96, layers=3, heads=6, kv_heads=2, hidden=192, max_length=512),
        sides=(56, 84, 112),
    ),
    "gpu": Config(
        VisionConfig(dim=1280, layers=24, heads=16),
        TextConfig(vocab_size=32_000, dim=2048, layers=24, heads=16, kv_heads=4, hidden=5504, max_length=4096),
        sides=(336, 448, 672),
    ),
}
