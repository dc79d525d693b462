"""How often an A/B of equal code says something, and how often a real gain is found: studies on recorded series.

    python power.py --record series.json --seconds 240          # equal code in all arms, by the tool's own routes
    python power.py --study series.json                         # resampled: A/A, +3 %, +5 %, -5 % in tries of 30 s

The series is recorded by the product: the program of ``program.py`` runs with a patch that changes nothing, by the
route *none* (rounds of A, A′, B in one process) and by the route *process*. A try takes a stretch of 30 s at random,
shuffles the arms within each round (they are equal code), takes a gain off the arm B, and judges it as the tool does.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

from awp_lint.detector.finding import Confidence, Edit, Event, Finding, Fix, Mark, MarkKind, RootCause, Safety, Span
from awp_lint.detector.profiling.run import plan
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.launching import Launcher, Request, Wish, say
from awp_lint.detector.verification.outcome import Series, trimmed_mean_of
from awp_lint.detector.verification.statistics import MIN_PROCESSES, effect
from awp_lint.detector.verification.trials import trial_of
from awp_lint.detector.verification.verdict import judge

PROGRAM = Path(__file__).parent / "program.py"
TRIES = 200
TRY_S = 30.0
GAINS = (0.0, 3.0, 5.0, -5.0)


class Loop:
    """The loop over steps in ``generate``, as the static half gives it."""

    module, unit = "program", "step"

    def __init__(self) -> None:
        self.path = str(PROGRAM)
        tree = ast.parse(PROGRAM.read_text())
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "generate")
        loop = next(node for node in function.body if isinstance(node, ast.For))
        assert loop.end_lineno is not None and loop.end_col_offset is not None
        place = (loop.lineno, loop.col_offset, loop.end_lineno, loop.end_col_offset)
        self.mark = Mark(MarkKind.LOOP, *place, "generate", function.lineno, Event.NONE)


def nothing() -> Finding:
    """A patch that changes nothing."""
    text = PROGRAM.read_text()
    old, new = "x = torch.tanh(x @ self.weight)", "x = torch.tanh(x @ self.weight) if True else x"
    start = text.index(old)
    fix = Fix("nothing", Safety.SAFE, (Edit(start, start + len(old), new),))
    return Finding(
        id="nothing", rule="NOTHING", name="nothing", path=str(PROGRAM), span=Span(1, 1, 1, 2), function="forward",
        message="", why=(), root_cause=RootCause.RUNTIME, frequency="step", confidence=Confidence.HIGH, fix=fix,
    )  # fmt: skip


def record(path: str, seconds: float, layers: int, processes: int) -> None:
    """Rounds of equal code by both routes, into a file."""
    trial = trial_of([nothing()], lambda p: Source.decode(p, Path(p).read_bytes()), "nothing")
    command = [sys.executable, str(PROGRAM), "--layers", str(layers), "--requests"]
    launcher = Launcher([*command, "1000000"], plan([], [Loop()]), {"max_wait": 60.0}, say)
    launched = launcher.launch(Request((Wish(trial, seconds, compare=False),), seconds + 60, 1))
    series = Series()
    rounds = series.add(launched.parts(0), 1)
    if not rounds:
        sys.exit(f"nothing was measured: {launched.stopped} {launched.errors} {launched.parts(0)}")
    say(f"{rounds} rounds in one process")
    alone: list[float] = []

    def write() -> None:
        data = {
            "unit_ms": float(np.median(series.a)) / 1e6,
            "seconds": series.seconds,
            "rounds": [[round(v) for v in row] for row in zip(series.a, series.same, series.b, strict=True)],
            "processes": [round(v) for v in alone],
        }
        Path(path).write_text(json.dumps(data) + "\n")

    write()
    launcher = Launcher([*command, "3"], plan([], [Loop()]), {"max_wait": 60.0}, say)
    for number in range(processes):
        arm = "AB"[number % 2]
        launched = launcher.launch(Request((Wish(trial, 60.0, compare=False),), 60.0, number, "process", arm))
        if launcher.interrupted:
            break
        times = max(launched.units, key=len, default=())
        if times:
            alone.append(trimmed_mean_of(times))
            write()


def study(path: str) -> None:
    """Print what the tries say."""
    data: dict[str, Any] = json.loads(Path(path).read_text())
    rounds = np.asarray(data["rounds"], float)
    length = int(len(rounds) * TRY_S / data["seconds"])
    print(
        f"route none: {len(rounds)} rounds in {data['seconds']:.0f} s, a unit takes {data['unit_ms']:.1f} ms (median)"
    )
    low, high = np.percentile(rounds, (10, 90)) / 1e6
    print(f"spread of a unit: 10th to 90th percentile {low:.1f}–{high:.1f} ms")
    print(f"{TRIES} tries of {TRY_S:g} s, {length} rounds each")
    for gain in GAINS:
        _tries(rounds, length, gain, None)
    alone = np.asarray(data["processes"], float)
    if len(alone) < 3 * MIN_PROCESSES:
        print(f"route process: {len(alone)} processes recorded, {3 * MIN_PROCESSES} are needed for a try")
        return
    spread = 100 * alone.std() / alone.mean()
    print(f"route process: {len(alone)} processes of equal code, spread {spread:.1f} % (1 sigma)")
    print(f"{TRIES} tries of {MIN_PROCESSES} rounds, three processes each")
    for gain in GAINS:
        _tries(alone, MIN_PROCESSES, gain, range(MIN_PROCESSES))


def _tries(values: Any, length: int, gain: float, clusters: Any) -> None:
    rng = np.random.default_rng(11)
    verdicts: Counter[str] = Counter()
    covered = excluded = reversed_ = 0
    halves = []
    for number in range(TRIES):
        if clusters is None:
            start = int(rng.integers(0, max(1, len(values) - length)))
            piece = rng.permuted(values[start : start + length], axis=1)
        else:
            # Neighbouring processes: the machine of the same minutes.
            start = int(rng.integers(0, len(values) - 3 * length + 1))
            piece = rng.permuted(values[start : start + 3 * length].reshape(length, 3), axis=1)
        found = effect(piece[:, 0], piece[:, 1], piece[:, 2] * (1 - gain / 100), clusters, seed=number)
        covered += found.saving.low <= gain <= found.saving.high
        excluded += found.saving.excludes_zero
        reversed_ += (found.saving.high < 0 < gain) or (gain < 0 < found.saving.low)
        verdict = judge(found, TRY_S, "none" if clusters is None else "process").verdict.value
        verdicts[verdict] += 1
        halves.append(found.saving.half)
    print(
        f"  {gain:+.0f} %: covered by the interval {covered / TRIES:.1%}, 0 excluded {excluded / TRIES:.1%}, "
        f"reversed {reversed_}, half width {np.median(halves):.2f} %, verdicts {dict(verdicts)}"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--study", metavar="FILE")
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--layers", type=int, default=60)
    parser.add_argument("--processes", type=int, default=45)
    args = parser.parse_args()
    files = {name: os.path.abspath(getattr(args, name) or "") for name in ("record", "study")}
    os.chdir(PROGRAM.parent)
    if args.record:
        record(files["record"], args.seconds, args.layers, args.processes)
    if args.study:
        study(files["study"])


if __name__ == "__main__":
    main()
