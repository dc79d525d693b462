"""What a copy of host memory to a CUDA device takes, by size and form, and whether the host waits for the device.

    python benchmarks/check_copies.py

Three forms: ``x.to(device)``, that with ``non_blocking=True``, and ``x.pin_memory().to(device, non_blocking=True)``.
Each beside an idle device and behind a kernel of two milliseconds: what takes so long there has waited for it.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable

import torch

BEHIND_MS = 2.0
ROUNDS = 5


def micros(copy: Callable[[], object], cycles: int, count: int) -> float:
    """Median host time of a copy, in us, behind a kernel of so many cycles (0: none)."""
    times = []
    for _ in range(count):
        torch.cuda.synchronize()
        if cycles:
            torch.cuda._sleep(cycles)
        began = time.perf_counter()
        copy()
        times.append(1e6 * (time.perf_counter() - began))
    torch.cuda.synchronize()
    return statistics.median(times)


def main() -> int:
    if not torch.cuda.is_available():
        print("needs a CUDA device")
        return 2
    torch.cuda._sleep(1000)
    torch.cuda.synchronize()
    began = time.perf_counter()
    torch.cuda._sleep(100_000_000)
    torch.cuda.synchronize()
    cycles = int(100_000_000 * BEHIND_MS / 1e3 / (time.perf_counter() - began))
    print("bytes | idle device: plain, non_blocking, pinned and non_blocking, us | behind 2 ms: the same")
    for elements in (1, 64, 1024, 16_384, 262_144, 1_048_576, 4_194_304):
        x = torch.randn(elements)
        forms: tuple[Callable[[], object], ...] = (
            lambda x=x: x.to("cuda"),
            lambda x=x: x.to("cuda", non_blocking=True),
            lambda x=x: x.pin_memory().to("cuda", non_blocking=True),
        )
        for form in forms:
            micros(form, 0, 20)
        rows = [[micros(form, kernel, 60) for _ in range(ROUNDS) for form in forms] for kernel in (0, cycles)]
        said = [
            " ".join(
                f"{statistics.median(row[n::3]):.1f} [{min(row[n::3]):.1f}, {max(row[n::3]):.1f}]" for n in range(3)
            )
            for row in rows
        ]
        print(4 * elements, "|", " | ".join(said), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
