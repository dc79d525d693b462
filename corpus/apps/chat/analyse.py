"""Compares saved load runs: latency percentiles and outliers of JSON files, one list of milliseconds each.

    python analyse.py before.json after.json

Needs NumPy; the server itself does not.
"""

from __future__ import annotations

import json
import sys

import numpy as np


def load(path: str) -> np.ndarray:
    with open(path) as file:
        return np.asarray(json.load(file), dtype=np.float64)


def summary(name: str, latency: np.ndarray) -> str:
    """One line a run: median, tail and the share of requests above three times the median."""
    median = np.median(latency).item()
    slow = latency[latency > 3 * median]
    share = 100.0 * float(slow.size) / float(latency.size)
    tail = ", ".join(f"p{rank} {value:.1f}" for rank, value in zip((90, 99), np.percentile(latency, (90, 99)).tolist()))
    return f"{name}: median {median:.1f} ms, {tail}, {share:.1f} % slow"


def drift(latency: np.ndarray, parts: int = 10) -> list[float]:
    """Mean latency of each tenth of the run, to see whether it was steady."""
    means = []
    for part in np.array_split(latency, parts):
        if (part > 0).any():
            means.append(part[part > 0].mean().item())
    return means


def main(paths: list[str]) -> int:
    if not paths:
        print(__doc__, file=sys.stderr)
        return 2
    for path in paths:
        latency = load(path)
        print(summary(path, latency))
        print("  " + " ".join(f"{value:.1f}" for value in drift(latency)))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
