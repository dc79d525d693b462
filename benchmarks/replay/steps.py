"""Decode-like programs with planted statements, each of which can be mended, to try the replay's predictions on.

    python benchmarks/replay/steps.py decode --seconds 15            run it (this is what gets profiled)
    python benchmarks/replay/steps.py decode --measure read          what the step gains without the statement
    python benchmarks/replay/steps.py decode --around DIR            measure, run until DIR/profiled is there, measure

A line's comment ``planted: NAME EVENT CAUSE`` says what is planted there. Taken out is what its fix takes out: a read
leaves the value on the device, a selection by a mask becomes one by values, a loop over rows one call, a copy and host
work go. ``--measure`` takes turns: pairs of blocks with and without the statement, random order within a pair.
"""

from __future__ import annotations

import argparse
import fcntl
import json
import os
import random
import time
from pathlib import Path
from typing import Any

import torch

OFF: set[str] = set()


class Decode(torch.nn.Module):
    """Many small kernels: the host cannot keep up."""

    width, rows, layers = 1024, 1, 24
    work, heads, copied = 12_000, 48, 1536  # of the planted statements: additions, kernels, rows
    first = second = 0  # additions of the host's before the layers, and between their halves: nothing to be mended
    without: frozenset[str] = frozenset()  # planted statements that the program does not have
    only: frozenset[str] = frozenset()  # or has alone

    def __init__(self, device: str) -> None:
        super().__init__()
        self.device = device
        dtype = torch.bfloat16 if device == "cuda" else torch.float32
        self.linear = torch.nn.ModuleList(
            torch.nn.Linear(self.width, self.width, bias=False, device=device, dtype=dtype) for _ in range(self.layers)
        )
        self.start = torch.randn(self.rows, self.width, device=device, dtype=dtype)
        self.table = torch.randn(self.heads, self.width, device=device, dtype=dtype)
        self.bias = torch.randn(self.copied, self.width, dtype=dtype)
        self.cached = self.bias.to(device)
        self.token = 0.0

    def layer(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """One layer."""
        return layer(x, self.linear[number].weight)

    def eager(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """The same kernel by kernel."""
        return Decode.half(self, number, x)

    def half(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """The first or the second half of the layers."""
        for layer in range(number * self.layers // 2, (number + 1) * self.layers // 2):
            x = self.layer(layer, x)
        return x

    def step(self, x: torch.Tensor) -> torch.Tensor:
        """One unit."""
        count(self.first)
        first = self.half if "graph" in OFF else self.eager
        x = first(0, x)  # planted: graph LAUNCHES runtime
        if "middle" not in OFF:
            self.token = x.sum().item()  # planted: middle WAIT runtime
        else:
            x.sum()
        count(self.second)
        x = self.half(1, x)
        if "host" not in OFF:
            count(self.work)  # planted: host HOST scheduling
        if "rows" not in OFF:
            scale(self.table)  # planted: rows LAUNCHES scheduling
        else:
            self.table * 2
        if "picked" not in OFF:
            _picked = self.table[self.table > 3.0]  # planted: picked WAIT runtime
        else:
            torch.where(self.table > 3.0, self.table, 0.0)
        bias = self.cached
        if "upload" not in OFF:
            bias = self.bias.to(self.device)  # planted: upload COPY memory
        x = torch.nn.functional.normalize(x + bias[:1])
        if "fetch" not in OFF:
            _fetched = self.cached.cpu()  # planted: fetch COPY memory
        if "read" not in OFF:
            self.token = x.argmax().item()  # planted: read WAIT runtime
        else:
            x.argmax()
        return x


class Batch(Decode):
    """The same with a batch of 64."""

    width, rows = 2048, 64
    heads, copied = 48, 768


class Balanced(Decode):
    """Host and device have about as much to do."""

    width, rows, layers = 4096, 1024, 24
    heads, copied = 48, 384


class Device(Decode):
    """Large kernels: the host waits for the device."""

    width, rows, layers = 8192, 4096, 8
    work, heads, copied = 20_000, 64, 512


class Recorded(Decode):
    """The layers as two CUDA graphs; what is planted stays outside."""

    width, layers = 2048, 48
    heads, copied = 24, 256

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.held = [self.start.clone(), self.start.clone()]
        self.graphs: list[Any] = []
        if device != "cuda":
            return
        self.results = []
        with torch.inference_mode():
            for number in (0, 1):
                side = torch.cuda.Stream()
                with torch.cuda.stream(side):
                    super().half(number, self.held[number])
                torch.cuda.synchronize()
                graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(graph):
                    self.results.append(super().half(number, self.held[number]))
                self.graphs.append(graph)

    def half(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """The recorded half."""
        if not self.graphs:
            return super().half(number, x)
        self.held[number].copy_(x)
        self.graphs[number].replay()
        return self.results[number]


class Captured(Recorded):
    """Two CUDA graphs that keep the device busy, with reads behind them."""

    width, rows, layers = 8192, 4096, 8
    first = 20_000
    without = frozenset(("host", "rows", "picked", "upload", "fetch"))


class Small(Decode):
    """A model whose step is short."""

    width, layers = 512, 12
    work, heads, copied = 5000, 20, 1024


class Deep(Decode):
    """Many layers, a batch of 8."""

    rows, layers = 8, 48
    work, heads, copied = 16_000, 64, 2048


class Wide(Decode):
    """Weights that take the device long to read: decoding of a large model, a batch of 16."""

    width, rows, layers = 8192, 16, 24
    work, heads, copied = 12_000, 48, 192


class Prefill(Decode):
    """Many rows at once: the device is busy throughout."""

    width, rows, layers = 4096, 16_384, 8
    work, heads, copied = 20_000, 64, 1024


class Large(Decode):
    """A batch of 32 through more and wider layers."""

    width, rows, layers = 4096, 32, 32
    work, heads, copied = 12_000, 48, 384


class Free(Decode):
    """Nothing that waits: the host runs ahead of a device that has much to do."""

    width, rows, layers = 8192, 256, 16
    work, heads, copied = 40_000, 96, 192
    without = frozenset(("middle", "picked", "upload", "fetch", "read"))


class Overlap(Decode):
    """Host and device could work side by side, were it not for one read in the middle."""

    width, rows, layers = 8192, 512, 16
    work, heads, copied = 30_000, 48, 192
    without = frozenset(("picked", "upload", "fetch", "read"))


class Selected(Overlap):
    """The same with a selection that waits."""

    without = frozenset(("middle", "upload", "fetch", "read"))


class Token(Decode):
    """A read at the end of each step: the device has nothing to do while the host prepares the next one."""

    width, rows, layers = 16_384, 16, 24
    first = 20_000
    without = frozenset(("middle", "host", "rows", "picked", "upload", "fetch"))


class Router(Token):
    """A read in the middle, before the host decides what follows."""

    first, second = 0, 20_000
    without = frozenset(("read", "host", "rows", "picked", "upload", "fetch"))


class Kept(Token):
    """A selection by a mask at the end of each step, before the host prepares the next one."""

    without = frozenset(("middle", "host", "rows", "upload", "fetch", "read"))


class Shown(Token):
    """A copy to the host at the end of each step, before the host prepares the next one."""

    copied = 16
    without = frozenset(("middle", "host", "rows", "picked", "upload", "read"))


class Replayed(Recorded):
    """The first half of the layers kernel by kernel, where its graph could be replayed."""

    width, rows, layers = 2048, 16, 48
    only = frozenset(("graph",))


class Normed(Decode):
    """Norms by hand, of few rows: many launches that do little."""

    width, rows, layers = 2048, 16, 32
    only = frozenset(("norm",))

    def layer(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """One layer with a norm as it is often written out."""
        norm = by_hand if "norm" not in OFF else in_one
        y = norm(x)  # planted: norm LAUNCHES compute
        return x + torch.nn.functional.silu(torch.nn.functional.linear(y, self.linear[number].weight)) * 0.1


class Passed(Normed):
    """The same for many rows: each kernel of a norm goes over all memory once more."""

    rows, layers = 32_768, 6


class Compiled(Decode):
    """The layers compiled."""

    width, rows, layers = 2048, 16, 24
    work, heads, copied = 5000, 24, 384

    def __init__(self, device: str) -> None:
        super().__init__(device)
        self.compiled = torch.compile(layer) if device == "cuda" else layer

    def layer(self, number: int, x: torch.Tensor) -> torch.Tensor:
        """The compiled layer."""
        return self.compiled(x, self.linear[number].weight)


def in_one(x: torch.Tensor) -> torch.Tensor:
    """A layer norm in one kernel."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:])


def by_hand(x: torch.Tensor) -> torch.Tensor:
    """The same, an operator at a time."""
    mean = x.mean(-1, keepdim=True)
    variance = (x - mean).pow(2).mean(-1, keepdim=True)
    return (x - mean) * torch.rsqrt(variance + 1e-5)


def layer(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    """One layer with a norm written by hand."""
    y = x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-6)
    return x + torch.nn.functional.silu(torch.nn.functional.linear(y, weight)) * 0.1


PROGRAMS = {
    "decode": Decode, "batch": Batch, "balanced": Balanced, "device": Device, "recorded": Recorded, "small": Small,
    "deep": Deep, "wide": Wide, "prefill": Prefill, "compiled": Compiled, "large": Large, "free": Free,
    "overlap": Overlap, "selected": Selected, "captured": Captured, "token": Token, "router": Router, "kept": Kept,
    "shown": Shown, "replayed": Replayed, "normed": Normed, "passed": Passed,
}  # fmt: skip
USUAL = ("middle", "host", "rows", "picked", "upload", "fetch", "read")
PLANTED = (*USUAL, "graph", "norm")


def planted_in(model: Decode) -> list[str]:
    """The planted statements that a program has."""
    return [
        name for name in PLANTED if (name in model.only if model.only else name in USUAL) and name not in model.without
    ]


def count(times: int) -> int:
    """Host work."""
    total = 0
    for number in range(times):
        total += number
    return total


def scale(table: torch.Tensor) -> list[torch.Tensor]:
    """A kernel a row."""
    rows = []
    for row in range(table.shape[0]):
        rows.append(table[row] * 2)
    return rows


def generate(model: Decode, steps: int) -> torch.Tensor:
    """A request: a loop of steps."""
    x = model.start
    for _ in range(steps):
        x = model.step(x)
    return x


def step_ms(model: Decode, steps: int) -> float:
    """What a step takes in the long run: on a device by its own clock, between the same points of two steps. By the
    host's clock around a drained block, a host that runs ahead would hide nothing of its work behind the first step."""
    generate(model, 3)
    if model.device != "cuda":
        begun = time.perf_counter()
        generate(model, steps)
        return 1e3 * (time.perf_counter() - begun) / steps
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    generate(model, steps)
    end.record()
    end.synchronize()
    return begin.elapsed_time(end) / steps


def measure(model: Decode, name: str, pairs: int, seconds: float) -> dict[str, object]:
    """Unit time in ms with and without a planted statement, pair by pair; a block takes about ``seconds``."""
    rng = random.Random(0)
    found: dict[str, list[float]] = {"with": [], "without": []}
    steps = 8
    for pair in range(pairs + 2):
        for arm in rng.sample(("with", "without"), 2):
            OFF.discard(name)
            if arm == "without":
                OFF.add(name)
            took = step_ms(model, steps)
            if pair > 1:  # the first pairs warm up and say how many steps a block has
                found[arm].append(took)
        if pair == 1:
            steps = max(8, round(1e3 * seconds / took))
    OFF.discard(name)
    return {"name": name, **found}


def measure_around(model: Decode, folder: Path, pairs: int, seconds: float) -> None:
    """Measure every planted statement before and behind a profile run of this process."""
    there = planted_in(model)
    for name in ("before", "after"):
        rows = [measure(model, planted, pairs, seconds) for planted in there]
        made = folder / f"{name}.part"
        made.write_text(json.dumps(rows))
        made.rename(folder / f"{name}.json")
        while name == "before" and not (folder / "profiled").exists():
            generate(model, 16)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program", choices=PROGRAMS)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument("--measure", nargs="*", choices=PLANTED)
    parser.add_argument("--around", metavar="DIR", type=Path)
    parser.add_argument("--lock", type=Path, help="a file that is locked from the first measurement to the last")
    parser.add_argument("--pairs", type=int, default=40)
    parser.add_argument("--block", type=float, default=0.05, help="seconds of a measured block (default %(default)s)")
    options = parser.parse_args()
    if options.device == "cpu":
        torch.set_num_threads(1)
        for program in PROGRAMS.values():
            program.width, program.rows, program.layers, program.copied = 64, 4, 8, 64
    with torch.inference_mode():
        model = PROGRAMS[options.program](options.device)
        OFF.update(set(PLANTED).difference(planted_in(model)))
        if options.measure is not None:
            for name in options.measure or planted_in(model):
                print(json.dumps(measure(model, name, options.pairs, options.block)), flush=True)
            return
        generate(model, 16)  # what compiles does so here
        if options.around is not None:
            with open(options.lock or os.devnull, "a") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                measure_around(model, options.around, options.pairs, options.block)
            return
        end = time.monotonic() + options.seconds
        while time.monotonic() < end:
            generate(model, 16)


if __name__ == "__main__":
    main()
