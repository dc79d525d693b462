"""What the planted programs share: options, and a row of requests that ends after some seconds."""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Options:
    device: str
    size: str
    seconds: float
    truth: bool = False
    around: Path | None = None


@dataclass(frozen=True)
class Served:
    """How much a run did."""

    requests: int
    steps: int

    def __str__(self) -> str:
        return f"{self.requests} requests, {self.steps} steps"


REQUEST_SECONDS: list[float] = []  # what each request of the last row took
BETWEEN: list[Callable[[], None]] = []  # what runs behind each request, outside its time


def requests_for(seconds: float) -> Iterator[int]:
    """Request numbers from 0 on until the time is over; three at least."""
    REQUEST_SECONDS.clear()
    now = time.perf_counter()
    end = now + seconds
    number = 0
    while number < 3 or now < end:
        yield number
        number += 1
        REQUEST_SECONDS.append(time.perf_counter() - now)
        for other in BETWEEN:
            other()
        now = time.perf_counter()


def parse(about: str | None) -> Options:
    """The options of the command line. On a CPU, PyTorch gets one thread: a busy machine disturbs less."""
    parser = argparse.ArgumentParser(description=about, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--truth", action="store_true", help="time the planted statements without any profiler")
    parser.add_argument(
        "--around", metavar="FOLDER", type=Path, help="truth, then service and short truths in turns, see truth.py"
    )
    args = parser.parse_args()
    if args.device == "cpu":
        import torch

        torch.set_num_threads(1)
    return Options(args.device, args.size, args.seconds, args.truth, args.around)
