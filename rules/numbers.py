"""Numbers as somebody wrote them: what no float holds, or has too many digits to be read, is none."""

from __future__ import annotations

import math

_MOST_DIGITS = 18  # of what fits a machine word


def real(value: object) -> float | None:
    """A Python number as a float; None for anything else, switches too, and for one that no float holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        found = float(value)
    except OverflowError:
        return None
    return found if math.isfinite(found) else None


def whole(text: str) -> int | None:
    """The whole number that a text of plain digits is; None for anything else and for one that sizes nothing."""
    return int(text) if len(text) <= _MOST_DIGITS and text.isascii() and text.isdigit() else None
