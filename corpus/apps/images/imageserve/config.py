"""Sizes of the parts, and what a job may ask for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Sizes:
    dim: int
    layers: int
    heads: int
    side: int  # of the latent image
    channels: int
    patch: int
    text_dim: int
    text_layers: int
    text_length: int
    steps: int
    decoder_width: int

    @property
    def tokens(self) -> int:
        return (self.side // self.patch) ** 2


SIZES = {
    "cpu": Sizes(dim=128, layers=4, heads=4, side=16, channels=4, patch=2, text_dim=64, text_layers=2, text_length=24,
                 steps=12, decoder_width=32),
    "gpu": Sizes(dim=1152, layers=24, heads=16, side=64, channels=4, patch=2, text_dim=768, text_layers=12,
                 text_length=77, steps=28, decoder_width=128),
}


@dataclass(frozen=True)
class Job:
    number: int
    prompts: tuple[str, ...]
    negative: str = ""
    guidance: float = 5.0
    rescale: float = 0.7
    seed: int = 0
