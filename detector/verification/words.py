"""A verification as JSON-ready data and as a line for a person. Needs nothing heavy."""

from __future__ import annotations

from typing import Any

from awp_lint.detector.finding import Verification


def as_dict(found: Verification) -> dict[str, Any]:
    """By the contract; savings that were not measured are null."""

    def rounded(value: float | None) -> float | None:
        return None if value is None else round(value, 3)

    return {
        "verdict": found.verdict.value,
        "saving_pct": rounded(found.saving_pct),
        "low_pct": rounded(found.low_pct),
        "high_pct": rounded(found.high_pct),
        "pairs": found.pairs,
        "equality": found.equality,
        "notes": list(found.notes),
    }


def words(found: Verification) -> str:
    """The verdict with its figure, or with why there is none."""
    name = found.verdict.value.replace("_", " ")
    if found.saving_pct is None or found.low_pct is None or found.high_pct is None:
        why = found.equality or next(iter(found.notes), "")
        return f"{name}: {why}" if why else name
    return f"{name} {found.saving_pct:+.1f} % [{found.low_pct:.1f}, {found.high_pct:.1f}]"
