"""What a summary must not do: repeat itself, or end before it has begun. All on the device, for all rows at once."""

from __future__ import annotations

import torch


def penalise(scores: torch.Tensor, seen: torch.Tensor, penalty: float) -> torch.Tensor:
    """Makes tokens that are there already, ``seen`` (rows, vocab), less likely."""
    return torch.where(seen, torch.where(scores < 0, scores * penalty, scores / penalty), scores)


def forbid_repeated(scores: torch.Tensor, output: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
    """Forbids tokens that would complete a run of three that is there already. ``output`` (rows, limit) is filled up to
    ``place`` (1,)."""
    last = output.index_select(1, place)
    before = output.index_select(1, (place - 1).clamp(min=0))
    there = torch.arange(2, output.shape[1], device=output.device) <= place
    again = (output[:, :-2] == before) & (output[:, 1:-1] == last) & there
    banned = torch.zeros_like(scores, dtype=torch.int32).scatter_add_(1, output[:, 2:], again.int())
    return scores.masked_fill(banned > 0, float("-inf"))


def forbid_end(scores: torch.Tensor, place: torch.Tensor, length: int, end: int) -> torch.Tensor:
    """Forbids the end of the summary before it has ``length`` tokens."""
    column = torch.where(place + 1 <= length, float("-inf"), scores[:, end])
    return scores.index_copy(1, torch.full_like(place, end), column[:, None])
