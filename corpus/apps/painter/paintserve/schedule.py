"""Noise levels, worked out once in plain Python."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """One move from noise level ``level`` to ``level + change``."""

    level: float
    change: float
    input_scale: float
    label: float  # how the model is told the level


def schedule(steps: int, highest: float = 20.0, lowest: float = 0.02, bend: float = 7.0) -> list[Step]:
    """Levels that are close together where there is little noise."""
    top, bottom = highest ** (1 / bend), lowest ** (1 / bend)
    levels = [(top + number / (steps - 1) * (bottom - top)) ** bend for number in range(steps)] + [0.0]
    return [
        Step(level, following - level, (level**2 + 1.0) ** -0.5, 250.0 * level / (level + 1.0))
        for level, following in zip(levels, levels[1:])
    ]
