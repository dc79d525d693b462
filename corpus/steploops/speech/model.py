"""A small speech model: a decoder over frames, and a second one over the codebooks of a frame."""

from __future__ import annotations

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class SpeechConfig:
    text_vocab: int = 256
    code_vocab: int = 512
    codebooks: int = 4
    dim: int = 128
    layers: int = 3
    heads: int = 4
    depth_dim: int = 96
    depth_layers: int = 2
    depth_heads: int = 4


SIZES = {
    "cpu": SpeechConfig(),
    "gpu": SpeechConfig(
        code_vocab=2048, codebooks=8, dim=1024, layers=16, heads=16, depth_dim=512, depth_layers=4, depth_heads=8
    ),
}


class LayerCache:
    """Keys and values of one layer, (rows, heads, length, head_dim)."""

    def __init__(self) -> None:
        self.keys: torch.Tensor | None = None
        self.values: torch.Tensor | None = None

    @property
    def length(self) -> int:
        return 0 if self.keys is None else self.keys.shape[2]

    def append(self, keys: torch.Tensor, values: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        if self.keys is None or self.values is None:
            self.keys, self.values = keys, values
        else:
            self.keys = torch.cat([self.keys, keys], dim=2)
            self.values = torch.cat([self.values, values], dim=2)
        return self.keys, self.values


def rotate(x: torch.Tensor, angles: torch.Tensor) -> torch.Tensor:
    left, right = x.chunk(2, dim=-1)
    cos, sin = angles.cos().to(x.dtype), angles.sin().to(x.dtype)
    return torch.cat([left * cos - right * sin, right * cos + left * sin], dim=-1)


class Attention(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(dim, 3 * dim, bias=False)
        self.out = nn.Linear(dim, dim, bias=False)

    def forward(self, x: torch.Tensor, angles: torch.Tensor, cache: LayerCache) -> torch.Tensor:
        rows, length, dim = x.shape
        query, keys, values = (
            part.view(rows, length, self.heads, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, dim=-1)
        )
        query, keys = rotate(query, angles), rotate(keys, angles)
        keys, values = cache.append(keys, values)
        context = F.scaled_dot_product_attention(query, keys, values, is_causal=length > 1)
        return self.out(context.transpose(1, 2).reshape(rows, length, dim))


class Layer(nn.Module):
    def __init__(self, dim: int, heads: int) -> None:
        super().__init__()
        self.attention_norm = nn.RMSNorm(dim)
        self.attention = Attention(dim, heads)
        self.mlp_norm = nn.RMSNorm(dim)
        self.up = nn.Linear(dim, 4 * dim, bias=False)
        self.down = nn.Linear(4 * dim, dim, bias=False)

    def forward(self, x: torch.Tensor, angles: torch.Tensor, cache: LayerCache) -> torch.Tensor:
        x = x + self.attention(self.attention_norm(x), angles, cache)
        return x + self.down(F.silu(self.up(self.mlp_norm(x))))


class Decoder(nn.Module):
    """Causal layers with rotary positions that go on where the cache ends."""

    def __init__(self, dim: int, layers: int, heads: int) -> None:
        super().__init__()
        self.layers = nn.ModuleList(Layer(dim, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(dim)
        half = dim // heads // 2
        self.register_buffer("frequencies", 10_000.0 ** (-torch.arange(half, dtype=torch.float32) / half))

    def new_cache(self) -> list[LayerCache]:
        return [LayerCache() for _ in self.layers]

    def forward(self, x: torch.Tensor, caches: list[LayerCache]) -> torch.Tensor:
        """(rows, length, dim) to the same; the positions are appended to the caches."""
        start = caches[0].length
        positions = torch.arange(start, start + x.shape[1], device=x.device)
        angles = positions[:, None] * self.frequencies
        for layer, cache in zip(self.layers, caches):
            x = layer(x, angles, cache)
        return self.norm(x)


class DepthDecoder(nn.Module):
    """The codes of one frame from its hidden state, codebook after codebook."""

    def __init__(self, config: SpeechConfig) -> None:
        super().__init__()
        self.codebooks = config.codebooks
        self.project = nn.Linear(config.dim, config.depth_dim)
        self.embed = nn.ModuleList(nn.Embedding(config.code_vocab, config.depth_dim) for _ in range(config.codebooks))
        self.decoder = Decoder(config.depth_dim, config.depth_layers, config.depth_heads)
        self.heads = nn.ModuleList(nn.Linear(config.depth_dim, config.code_vocab) for _ in range(config.codebooks))

    def forward(self, hidden: torch.Tensor) -> torch.Tensor:
        """Hidden states (rows, dim) to codes (rows, codebooks), the best one each time."""
        caches = self.decoder.new_cache()
        x = self.project(hidden)[:, None]
        codes = []
        for index in range(self.codebooks):
            state = self.decoder(x, caches)
            code = self.heads[index](state[:, -1]).argmax(dim=-1)
            codes.append(code)
            x = self.embed[index](code)[:, None]
        return torch.stack(codes, dim=1)


class SpeechModel(nn.Module):
    def __init__(self, config: SpeechConfig) -> None:
        super().__init__()
        self.config = config
        self.text = nn.Embedding(config.text_vocab, config.dim)
        self.codes = nn.ModuleList(nn.Embedding(config.code_vocab, config.dim) for _ in range(config.codebooks))
        self.decoder = Decoder(config.dim, config.layers, config.heads)
        self.depth_decoder = DepthDecoder(config)

    def embed_frame(self, codes: torch.Tensor) -> torch.Tensor:
        """Codes (rows, codebooks) to one input (rows, 1, dim)."""
        parts = [embed(codes[:, index]) for index, embed in enumerate(self.codes)]
        return torch.stack(parts).sum(dim=0)[:, None]
