"""Words to tokens."""

from __future__ import annotations

import string
import zlib
from collections.abc import Sequence

import torch

MARKS = set(string.punctuation)
QUERY, PASSAGE = 1, 2  # say what a text is


class Tokenizer:
    """Words and punctuation marks by hashing; the lowest ids are kept for special tokens and for marks."""

    def __init__(self, vocab_size: int, max_length: int) -> None:
        self.vocab_size = vocab_size
        self.max_length = max_length
        self.marks = {mark: 3 + number for number, mark in enumerate(sorted(MARKS))}

    def encode(self, text: str, kind: int) -> list[int]:
        first = 3 + len(self.marks)
        ids = [kind]
        for word in text.lower().split():
            bare = word.rstrip(string.punctuation)
            if bare:
                ids.append(first + zlib.crc32(bare.encode()) % (self.vocab_size - first))
            ids += [self.marks[mark] for mark in word[len(bare) :] if mark in self.marks]
        return ids[: self.max_length]

    def batch(self, rows: Sequence[Sequence[int]]) -> torch.Tensor:
        """Host tokens (rows, longest)."""
        width = max(len(row) for row in rows)
        return torch.tensor([[*row, *[0] * (width - len(row))] for row in rows])
