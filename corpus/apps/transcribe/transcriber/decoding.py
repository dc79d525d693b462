"""From scores to text."""

from __future__ import annotations

from itertools import groupby

import torch

from transcriber.model import ALPHABET


def greedy(scores: torch.Tensor) -> str:
    """Best letter of each step, repeats joined, blanks dropped."""
    letters = scores.argmax(dim=-1)
    return "".join(ALPHABET[letter] for letter, _ in groupby(letters) if letter != 0)


def confidence(scores: torch.Tensor) -> float:
    """Mean probability of the best letters, blanks left out."""
    best = scores.float().softmax(dim=-1).max(dim=-1)
    spoken = best.values[best.indices != 0]
    return spoken.mean().item() if spoken.numel() else 0.0


def word_times(text: str, start: float, seconds: float) -> list[tuple[str, float]]:
    """Words with the second at which each begins, letters taken to be equally long."""
    times = []
    position = 0
    for word in text.split():
        position = text.index(word, position)
        times.append((word, start + seconds * position / len(text)))
        position += len(word)
    return times
