"""Documents as tokens, cut into pieces, and padded."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import torch

PAD, START, END, FIRST = 0, 1, 2, 3


class Tokenizer:
    """Words to ids by hashing; ids to made-up words."""

    def __init__(self, vocab_size: int) -> None:
        self.vocab_size = vocab_size

    def encode(self, text: str) -> list[int]:
        return [FIRST + zlib.crc32(word.encode()) % (self.vocab_size - FIRST) for word in text.split()]

    def decode(self, ids: Sequence[int]) -> str:
        return " ".join(f"w{number}" for number in ids if number >= FIRST)


def pieces(tokens: list[int], size: int, shared: int) -> list[list[int]]:
    """Pieces of at most ``size`` tokens; neighbours share ``shared`` of them."""
    step = size - shared
    return [tokens[start : start + size] for start in range(0, max(len(tokens) - shared, 1), step)]


def collate(rows: Sequence[Sequence[int]], width: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Tokens (rows, width) and where they are padding, both on the host."""
    tokens = torch.full((len(rows), width), PAD)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    return tokens, tokens == PAD


def batched(rows: Sequence[list[int]], size: int) -> Iterator[Sequence[list[int]]]:
    for start in range(0, len(rows), size):
        yield rows[start : start + size]
