"""A streaming acoustic encoder: convolution and attention with a left context that is carried from chunk to chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import nn


@dataclass(frozen=True)
class EncoderConfig:
    features: int = 40
    dim: int = 96
    layers: int = 3
    heads: int = 4
    kernel: int = 7
    context: int = 32
    vocab: int = 64


SIZES = {
    "cpu": EncoderConfig(),
    "gpu": EncoderConfig(features=80, dim=512, layers=17, heads=8, kernel=15, context=64, vocab=1024),
}


class LayerState(NamedTuple):
    """What one layer remembers: inputs of the convolution, and keys and values of the left context."""

    inputs: torch.Tensor
    keys: torch.Tensor
    values: torch.Tensor


class State(NamedTuple):
    layers: list[LayerState]
    seen: torch.Tensor  # frames in the left context, (rows,)


class Layer(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.heads = config.heads
        self.context = config.context
        self.norm1 = nn.LayerNorm(config.dim)
        self.norm2 = nn.LayerNorm(config.dim)
        self.norm3 = nn.LayerNorm(config.dim)
        self.qkv = nn.Linear(config.dim, 3 * config.dim)
        self.out = nn.Linear(config.dim, config.dim)
        self.pointwise = nn.Linear(config.dim, 2 * config.dim)
        self.depthwise = nn.Conv1d(config.dim, config.dim, config.kernel, groups=config.dim)
        self.up = nn.Linear(config.dim, 4 * config.dim)
        self.down = nn.Linear(4 * config.dim, config.dim)

    def attend(self, x: torch.Tensor, state: LayerState, mask: torch.Tensor) -> tuple[torch.Tensor, LayerState]:
        query, key, value = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        keys = torch.cat([state.keys, key], dim=2)
        values = torch.cat([state.values, value], dim=2)
        mixed = F.scaled_dot_product_attention(query, keys, values, attn_mask=mask)
        kept = state._replace(keys=keys[:, :, -self.context :], values=values[:, :, -self.context :])
        return self.out(mixed.transpose(1, 2).flatten(2)), kept

    def convolve(self, x: torch.Tensor, state: LayerState) -> tuple[torch.Tensor, LayerState]:
        gated = F.glu(self.pointwise(x), dim=-1)
        inputs = torch.cat([state.inputs, gated], dim=1)
        mixed = self.depthwise(inputs.transpose(1, 2)).transpose(1, 2)
        return F.silu(mixed), state._replace(inputs=inputs[:, -state.inputs.shape[1] :])

    def forward(self, x: torch.Tensor, state: LayerState, mask: torch.Tensor) -> tuple[torch.Tensor, LayerState]:
        mixed, state = self.attend(self.norm1(x), state, mask)
        x = x + mixed
        mixed, state = self.convolve(self.norm2(x), state)
        x = x + mixed
        return x + self.down(F.silu(self.up(self.norm3(x)))), state


class StreamingEncoder(nn.Module):
    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        self.project = nn.Linear(config.features, config.dim)
        self.layers = nn.ModuleList(Layer(config) for _ in range(config.layers))
        self.head = nn.Linear(config.dim, config.vocab)

    def initial_state(self, rows: int) -> State:
        config, weight = self.config, self.project.weight
        inputs = weight.new_zeros(rows, config.kernel - 1, config.dim)
        keys = weight.new_zeros(rows, config.heads, config.context, config.dim // config.heads)
        layers = [LayerState(inputs, keys, keys) for _ in self.layers]
        return State(layers, torch.zeros(rows, dtype=torch.long, device=weight.device))

    def forward(self, chunk: torch.Tensor, state: State) -> tuple[torch.Tensor, State]:
        """Scores (rows, length, vocab) of a chunk (rows, length, features), and the state for the next one."""
        length, context = chunk.shape[1], self.config.context
        x = self.project(chunk)
        age = torch.arange(context, 0, -1, device=x.device)
        known = age[None, :] <= state.seen[:, None]
        mask = F.pad(known, (0, length), value=True)[:, None, None]
        layers = []
        for layer, layer_state in zip(self.layers, state.layers):
            x, layer_state = layer(x, layer_state, mask)
            layers.append(layer_state)
        return self.head(x), State(layers, (state.seen + length).clamp(max=context))
