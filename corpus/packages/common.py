"""What the programs share: options, and a row of requests whose answers make one checksum."""

from __future__ import annotations

import argparse
import hashlib
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

import torch


@dataclass(frozen=True)
class Options:
    device: torch.device
    size: str
    requests: int

    def of(self, cpu: int, gpu: int) -> int:
        """A size, by the machine."""
        return gpu if self.size == "gpu" else cpu

    @property
    def dtype(self) -> torch.dtype:
        """What weights and inputs are in."""
        return torch.bfloat16 if self.device.type == "cuda" else torch.float32


def options(requests: int) -> Options:
    """The options of the command line."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--requests", type=int, default=requests)
    given = parser.parse_args()
    torch.manual_seed(0)
    if given.size == "cpu":
        torch.set_num_threads(1)
    return Options(torch.device("cuda" if given.size == "gpu" else "cpu"), given.size, given.requests)


def serve(given: Options, answer: Callable[[int], torch.Tensor]) -> None:
    """Ask ``answer`` once a request and print what all answers come to."""
    digest = hashlib.sha256()
    begun = time.perf_counter()
    for number in range(given.requests):
        digest.update(answer(number).float().cpu().numpy().round(2).tobytes())
    print(f"checksum {digest.hexdigest()[:16]}")
    print(f"{given.requests} requests in {time.perf_counter() - begun:.2f} s", file=sys.stderr)
