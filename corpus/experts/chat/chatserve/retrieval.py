"""Finds the notes that go with a question: a small cross-encoder scores each (question, note) pair."""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import nn

from chatserve.config import EncoderConfig
from chatserve.tokenizer import Tokenizer


class EncoderLayer(nn.Module):
    def __init__(self, dim: int, heads: int, fused: bool) -> None:
        super().__init__()
        self.heads = heads
        self.fused = fused
        self.norm1 = nn.LayerNorm(dim)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.out = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim)
        self.up = nn.Linear(dim, 4 * dim)
        self.down = nn.Linear(4 * dim, dim)

    def forward(self, x: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        rows, length, dim = x.shape
        qkv = self.qkv(self.norm1(x)).view(rows, length, 3, self.heads, dim // self.heads)
        query, key, value = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        if self.fused:
            context = F.scaled_dot_product_attention(query, key, value, attn_mask=visible[:, None, None])
        else:
            # the exporter of our edge build has no fused attention
            scores = query @ key.transpose(-2, -1) * (dim // self.heads) ** -0.5
            context = scores.masked_fill(~visible[:, None, None], float("-inf")).softmax(dim=-1) @ value
        x = x + self.out(context.transpose(1, 2).reshape(rows, length, dim))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class CrossEncoder(nn.Module):
    """Relevance (rows,) of token sequences (rows, length) that hold a question and a note; ``visible`` (rows, length)
    is False at padding."""

    def __init__(self, config: EncoderConfig, fused: bool = True) -> None:
        super().__init__()
        self.embed = nn.Embedding(config.vocab_size, config.dim)
        self.position = nn.Parameter(torch.zeros(config.max_length, config.dim))
        self.layers = nn.ModuleList(EncoderLayer(config.dim, config.heads, fused) for _ in range(config.layers))
        self.norm = nn.LayerNorm(config.dim)
        self.score = nn.Linear(config.dim, 1)

    def forward(self, tokens: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        x = self.embed(tokens) + self.position[: tokens.shape[1]]
        for layer in self.layers:
            x = layer(x, visible)
        mean = (self.norm(x) * visible[..., None]).sum(dim=1) / visible.sum(dim=1, keepdim=True)
        return self.score(mean)[:, 0]


class Reranker:
    def __init__(self, config: EncoderConfig, tokenizer: Tokenizer, device: torch.device, seed: int) -> None:
        self.config = config
        self.tokenizer = tokenizer
        self.device = device
        encoder = CrossEncoder(config)
        generator = torch.Generator().manual_seed(seed)
        with torch.no_grad():
            for parameter in encoder.parameters():
                if parameter.dim() > 1:
                    parameter.normal_(std=0.05, generator=generator)
        self.encoder = encoder.to(device).eval()

    @torch.inference_mode()
    def best(self, question: str, notes: Sequence[str], count: int) -> list[str]:
        """The ``count`` most relevant notes, best first."""
        pairs = [self.tokenizer.encode_pair(question, note, self.config.max_length) for note in notes]
        width = max(map(len, pairs))
        tokens = torch.tensor([ids + [0] * (width - len(ids)) for ids in pairs]).to(self.device)
        lengths = torch.tensor([len(ids) for ids in pairs]).to(self.device)
        visible = torch.arange(width, device=self.device) < lengths[:, None]
        order = self.encoder(tokens, visible).topk(min(count, len(notes))).indices.tolist()
        return [notes[index] for index in order]
