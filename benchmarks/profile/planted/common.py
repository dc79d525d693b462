"""What the planted programs share: options, a request loop bounded in time, and the switch to the truth run."""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    device: str
    size: str
    seconds: float


@dataclass(frozen=True)
class Served:
    """How much a run did."""

    requests: int
    steps: int


def until(seconds: float) -> Iterator[int]:
    """Numbers from 0 on until the time is over; three requests at least."""
    end = time.monotonic() + seconds
    number = 0
    while number < 3 or time.monotonic() < end:
        yield number
        number += 1


def main(path: str, serve: Callable[[Options], Served], about: str | None) -> int:
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--truth", action="store_true", help="time the planted statements without any profiler")
    args = parser.parse_args()
    if args.device == "cpu":
        import torch

        torch.set_num_threads(1)  # so that a busy machine disturbs the times less
    options = Options(args.device, args.size, args.seconds)
    if args.truth:
        from truth import measure

        print(json.dumps(measure(Path(path).resolve(), options), indent=1))
        return 0
    served = serve(options)
    print(f"{served.requests} requests, {served.steps} steps")
    return 0
