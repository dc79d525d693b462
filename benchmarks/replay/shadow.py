"""What launching layers takes behind other work, against the same behind none: what a statement leaves to what follows.

    python benchmarks/replay/shadow.py --seconds 24

Turns in random order, the device drained before each; medians of the host's time for a body of 24 layers, with 95 %
bootstrap intervals of the difference. The constants of ``detector/profiling/shadow.py`` are read from its figures.
"""

from __future__ import annotations

import argparse
import functools
import json
import random
import statistics
import time
from collections.abc import Callable

import torch
from steps import count, layer, scale

WIDTH = {"cuda": 1024, "cpu": 64}
LAYERS = 24


def actions(device: str, rows: torch.Tensor) -> dict[str, Callable[[], object]]:
    """What may stand before the body, by name."""
    text = json.dumps([{"a": number, "b": str(number)} for number in range(700)])
    zero = torch.zeros((), device=device)
    found: dict[str, Callable[[], object]] = {"nothing": lambda: None}
    for times in (1500, 6000, 12_000, 24_000, 48_000):
        found[f"a loop of {times}"] = functools.partial(count, times)
    for megabytes in (1, 3, 8):
        here = torch.randn(megabytes * 256, 1024)
        there = here.to(device)
        found[f"{megabytes} MB to the device"] = functools.partial(here.to, device)
        found[f"{megabytes} MB to the host"] = there.cpu
    found["48 launches"] = functools.partial(scale, rows)
    found["a read"] = zero.item
    found["json.loads"] = functools.partial(json.loads, text)
    return found


def interval(values: list[float]) -> tuple[float, float]:
    """95 % of the median, by the bootstrap."""
    drawn = sorted(statistics.median(random.choices(values, k=len(values))) for _ in range(200))
    return drawn[5], drawn[-6]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=24.0)
    options = parser.parse_args()
    torch.set_num_threads(1)
    device = "cuda" if torch.cuda.is_available() else "cpu"
    dtype, width = (torch.bfloat16 if device == "cuda" else torch.float32), WIDTH[device]
    weights = [torch.randn(width, width, device=device, dtype=dtype) for _ in range(LAYERS)]
    start = torch.randn(1, width, device=device, dtype=dtype)
    before = actions(device, torch.randn(48, width, device=device, dtype=dtype))
    own: dict[str, list[float]] = {name: [] for name in before}
    behind: dict[str, list[float]] = {name: [] for name in before}

    def body() -> torch.Tensor:
        x = start
        for weight in weights:
            x = layer(x, weight)
        return x

    with torch.inference_mode():
        for _ in range(5):
            body()
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            for name in random.sample(list(before), len(before)):
                body()
                if device == "cuda":
                    torch.cuda.synchronize()
                times = [time.perf_counter()]
                made = before[name]()
                times.append(time.perf_counter())
                body()
                times.append(time.perf_counter())
                del made
                own[name].append(1e6 * (times[1] - times[0]))
                behind[name].append(1e6 * (times[2] - times[1]))
    alone = statistics.median(behind["nothing"])
    print(f"{device}, {len(behind['nothing'])} turns, the body alone {alone:.1f} us")
    for name in before:
        low, high = interval(behind[name])
        middle = statistics.median(behind[name]) - alone
        took = statistics.median(own[name])
        print(f"{name:20} takes {took:8.1f} us and leaves {middle:+7.1f} [{low - alone:+.1f}, {high - alone:+.1f}] us")


if __name__ == "__main__":
    main()
