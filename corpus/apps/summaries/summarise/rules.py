"""What a summary must not do: repeat itself, or end before it has begun."""

from __future__ import annotations

from collections import defaultdict

import torch


class NoRepeatedNgrams:
    """Forbids tokens that would complete a run of ``size`` tokens that is there already."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for row in range(tokens.shape[0]):
            produced = tokens[row].tolist()
            following: dict[tuple[int, ...], list[int]] = defaultdict(list)
            for start in range(len(produced) - self.size + 1):
                *prefix, last = produced[start : start + self.size]
                following[tuple(prefix)].append(last)
            banned = following.get(tuple(produced[len(produced) + 1 - self.size :]))
            if banned:
                scores[row, banned] = float("-inf")
        return scores


class RepetitionPenalty:
    """Makes tokens that are there already less likely."""

    def __init__(self, penalty: float) -> None:
        self.penalty = penalty

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        for row in range(tokens.shape[0]):
            for token in set(tokens[row].tolist()):
                if scores[row, token] < 0:
                    scores[row, token] *= self.penalty
                else:
                    scores[row, token] /= self.penalty
        return scores


class LeastLength:
    """Forbids the end of the summary before it has ``length`` tokens."""

    def __init__(self, length: int, end: int) -> None:
        self.length = length
        self.end = end

    def __call__(self, tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        if tokens.shape[1] <= self.length:
            scores[:, self.end] = float("-inf")
        return scores
