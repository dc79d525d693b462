"""Patches whose true gain depends on who waits for whom: what the tool measures, against the program's own stop-watch.

    python benchmarks/verify/regimes.py [--seconds 25] [--save regimes]     needs an accelerator

In a loop that the device bounds, host work gains nothing when it goes, a read in the middle only what the device idles
behind it, and a copy that is made asynchronous what the host lost with it, if the device ever waits for the host. In a
loop that the host bounds, host work gains what it takes. ``--truth`` measures each change by itself: pairs of blocks
with and without it, in random order, drained before and after. Processes of equal code differ, by where their memory
lies for one: the stop-watch therefore runs in one process before the tool's and in one behind it.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve()
sys.path.insert(0, str(HERE.parents[1]))

CHANGED: set[str] = set()  # what --truth leaves out


@dataclass(frozen=True)
class Change:
    """A patch by texts, and the loop it is tried in."""

    name: str
    program: str
    old: str
    new: str
    says: str


CHANGES = (
    Change("hidden", "device", "count(self.work)", "count(0)", "host work behind the device's"),
    Change("read", "device", "_peak = x.amax().item()", "_peak = x.amax()", "a read in the middle of a step"),
    Change(
        "upload", "device", "self.bias.to(x.device)", "self.pinned.to(x.device, non_blocking=True)", "a copy that waits"
    ),
    Change("bound", "host", "count(self.work)", "count(0)", "host work in a loop that the host bounds"),
)


class Model:
    """Linear layers with a read, host work and an upload among them."""

    def __init__(self, program: str, device: str) -> None:
        import torch

        rows, width, layers, self.work = {"device": (4096, 8192, 8, 20_000), "host": (1, 1024, 96, 8_000)}[program]
        if device == "cpu":
            rows, width, layers = min(rows, 16), 64, 8
        dtype = torch.float32 if device == "cpu" else torch.bfloat16
        torch.manual_seed(0)
        self.weights = [torch.randn(width, width, device=device, dtype=dtype) / width**0.5 for _ in range(layers)]
        self.first = torch.randn(rows, width, device=device, dtype=dtype)
        self.bias = torch.randn(256, width, dtype=dtype)
        self.pinned = self.bias.pin_memory() if device != "cpu" else self.bias

    def step(self, x: Any) -> Any:
        """One unit."""
        half = len(self.weights) // 2
        for weight in self.weights[:half]:
            x = (x @ weight).tanh()
        if "hidden" not in CHANGED and "bound" not in CHANGED:
            count(self.work)
        if "read" in CHANGED:
            x.amax()
        else:
            _peak = x.amax().item()
        bias = self.bias.to(x.device) if "upload" not in CHANGED else self.pinned.to(x.device, non_blocking=True)
        for weight in self.weights[half:]:
            x = (x @ weight).tanh()
        return x + bias[:1]


def count(times: int) -> int:
    """Host work."""
    total = 0
    for number in range(times):
        total += number
    return total


def generate(model: Model, steps: int) -> Any:
    """One request."""
    x = model.first
    for _step in range(steps):
        x = model.step(x)
    return x


def drained(x: Any) -> float:
    """The request's sum, which waits for it."""
    return float(x.float().mean())


def truth(name: str, model: Model, pairs: int) -> list[tuple[float, float]]:
    """Seconds a step without and with a change, pair by pair."""
    rng = random.Random(0)
    found = []
    for pair in range(pairs + 2):
        took = {}
        for arm in rng.sample(("old", "new"), 2):
            CHANGED.discard(name)
            if arm == "new":
                CHANGED.add(name)
            drained(generate(model, 3))
            began = time.perf_counter()
            drained(generate(model, 16))
            took[arm] = (time.perf_counter() - began) / 16
        if pair > 1:
            found.append((took["old"], took["new"]))
    CHANGED.discard(name)
    return found


def interval(pairs: list[tuple[float, float]]) -> tuple[float, float, float]:
    """Saving in percent, the mean over pairs, and its 95 % bootstrap interval."""
    rng = random.Random(0)

    def saving(drawn: list[tuple[float, float]]) -> float:
        return 100 * (1 - statistics.fmean(new for _, new in drawn) / statistics.fmean(old for old, _ in drawn))

    draws = sorted(saving(rng.choices(pairs, k=len(pairs))) for _ in range(2000))
    return saving(pairs), draws[49], draws[1949]


def proven(change: Change, seconds: float, device: str) -> Any:
    """What the tool says of a patch."""
    from power import Loop, patched

    from awp_lint.detector.project.source import Source
    from awp_lint.detector.verification.prove import prove

    finding = patched(change.name, change.old, change.new, HERE)
    command = [sys.executable, str(HERE), "--run", change.program, "--device", device, "--steps", "40"]
    proof = prove(
        [finding], [Loop(HERE)], command, {"max_wait": 120.0}, lambda p: Source.decode(p, Path(p).read_bytes()),
        seconds + 20, report=lambda line: None,
    )  # fmt: skip
    (found,) = proof.by_finding.values()
    return found


def _watched(command: list[str]) -> tuple[float, float, float]:
    return interval(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout))


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=25.0, help="of proving a patch (default %(default)s)")
    parser.add_argument("--pairs", type=int, default=60, help="of the truth (default %(default)s)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--only", action="append", choices=[change.name for change in CHANGES])
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    parser.add_argument("--run", choices=("device", "host"), help=argparse.SUPPRESS)
    parser.add_argument("--truth", choices=[change.name for change in CHANGES], help="print this change's pairs")
    parser.add_argument("--steps", type=int, default=40, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.truth or options.run:
        import torch

        torch.set_num_threads(1)
        with torch.inference_mode():
            if options.truth:
                (change,) = (c for c in CHANGES if c.name == options.truth)
                print(json.dumps(truth(change.name, Model(change.program, options.device), options.pairs)))
            else:
                model, total = Model(options.run, options.device), 0.0
                for _ in range(1_000_000):
                    total += drained(generate(model, options.steps))
                print(total)
        return
    from measure import save, table

    rows = [["change", "loop bound by", "stop-watch, before and behind, %", "the tool, %", "rounds", "verdict", "meet"]]
    for change in (c for c in CHANGES if not options.only or c.name in options.only):
        command = [sys.executable, str(HERE), "--truth", change.name, "--device", options.device]
        command += ["--pairs", str(options.pairs)]
        watched = [_watched(command)]
        found = proven(change, options.seconds, options.device)
        watched.append(_watched(command))
        low, high = min(w[1] for w in watched), max(w[2] for w in watched)
        measured, meet = "", ""
        if found.saving_pct is not None:
            measured = f"{found.saving_pct:+.2f} [{found.low_pct:.2f}, {found.high_pct:.2f}]"
            meet = "yes" if found.low_pct <= high and low <= found.high_pct else "no"
        verdict = found.verdict.value.replace("_", " ")
        true = ", ".join(f"{w[0]:+.2f} [{w[1]:.2f}, {w[2]:.2f}]" for w in watched)
        rows.append([change.says, change.program, true, measured, str(found.pairs), verdict, meet])
        print("  ".join(rows[-1]), found.equality, flush=True)
    text = table(rows)
    print(text)
    if options.save:
        save(options.save, {"rows": rows}, text)


if __name__ == "__main__":
    main()
