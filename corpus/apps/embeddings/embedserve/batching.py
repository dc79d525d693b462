"""Which texts go through the encoder together."""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence

import torch


def tokenize(text: str, vocab_size: int, limit: int) -> list[int]:
    """Words to ids by hashing; 0 is kept for padding, 1 for a text without words."""
    ids = [2 + zlib.crc32(word.encode()) % (vocab_size - 2) for word in text.lower().split()]
    return ids[:limit] or [1]


def batches(lengths: Sequence[int], budget: int) -> Iterator[list[int]]:
    """Indices in groups of similar length whose padded size stays below ``budget`` tokens."""
    group: list[int] = []
    longest = 0
    for index in sorted(range(len(lengths)), key=lengths.__getitem__):
        longest = max(longest, lengths[index])
        if group and longest * (len(group) + 1) > budget:
            yield group
            group, longest = [], lengths[index]
        group.append(index)
    if group:
        yield group


def pad(rows: Sequence[Sequence[int]], pin: bool) -> torch.Tensor:
    """One host tensor (rows, longest), in pinned memory where a copy to the device follows."""
    width = max(len(row) for row in rows)
    tokens = torch.zeros(len(rows), width, dtype=torch.long, pin_memory=pin)
    for number, row in enumerate(rows):
        tokens[number, : len(row)] = torch.tensor(row)
    return tokens
