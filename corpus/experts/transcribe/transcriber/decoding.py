"""From scores to text."""

from __future__ import annotations

from itertools import groupby

import torch

from transcriber.model import ALPHABET


def best(scores: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Of scores (..., letters): the best letter and its probability (...), on the device."""
    found = scores.float().softmax(dim=-1).max(dim=-1)
    return found.indices, found.values


def greedy(letters: list[int]) -> str:
    """Best letter of each step, repeats joined, blanks dropped."""
    return "".join(ALPHABET[letter] for letter, _ in groupby(letters) if letter != 0)


def confidence(letters: list[int], chances: list[float]) -> float:
    """Mean probability of the best letters, blanks left out."""
    spoken = [chance for letter, chance in zip(letters, chances) if letter != 0]
    return sum(spoken) / len(spoken) if spoken else 0.0


def word_times(text: str, start: float, seconds: float) -> list[tuple[str, float]]:
    """Words with the second at which each begins, letters taken to be equally long."""
    times = []
    position = 0
    for word in text.split():
        position = text.index(word, position)
        times.append((word, start + seconds * position / len(text)))
        position += len(word)
    return times
