"""How often an A/B of equal code says something, and how often a real gain is found: studies on recorded series.

    python power.py --record series.json --route none --seconds 420        # equal code in all arms, by the tool's own
    python power.py --record series.json --route instance --builds 40      # routes; each adds to the file
    python power.py --record series.json --route process --processes 60
    python power.py --study series.json                   # resampled: A/A, +3 %, +5 %, -5 % in tries of 30 s
    python power.py --live 5                              # patches with a true gain of 0 and of 5 %, tried by the tool

The series is recorded by the product: the program of ``program.py`` runs with a patch that changes nothing. The file
may come from another machine; of a series only the times are read. Equal code is what makes tries out of it: a try
takes neighbouring pieces at random (by the route *none* 30 s of rounds, by *instance* five builds, by *process* fifteen
processes), gives the pieces' roles A, A′ and B out anew, takes a gain off the arm B, and judges as the tool does.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from awp_lint.detector.finding import Confidence, Edit, Event, Finding, Fix, Mark, MarkKind, RootCause, Safety, Span
from awp_lint.detector.profiling.run import plan
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.launching import Launcher, Request, Wish, say
from awp_lint.detector.verification.outcome import Series, trimmed_mean_of
from awp_lint.detector.verification.statistics import MIN_PROCESSES, Effect, effect
from awp_lint.detector.verification.trials import trial_of
from awp_lint.detector.verification.verdict import judge
from awp_lint.detector.verification.words import words

PROGRAM = Path(__file__).parent / "program.py"
ROUTES = ("none", "instance", "process")
TRIES = 200
TRY_S = 30.0
BUILDS = 5  # of a try
GAINS = (0.0, 3.0, 5.0, -5.0)
_STEP = "            x = self.tanh(x @ self.weight)\n"
_WASTE = 21  # units of work of 420


class Loop:
    """The loop over steps in ``generate``, as the static half gives it."""

    unit = "step"

    def __init__(self, program: Path = PROGRAM) -> None:
        self.path, self.module = str(program), program.stem
        tree = ast.parse(program.read_text())
        function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "generate")
        loop = next(node for node in function.body if isinstance(node, ast.For))
        assert loop.end_lineno is not None and loop.end_col_offset is not None
        place = (loop.lineno, loop.col_offset, loop.end_lineno, loop.end_col_offset)
        self.mark = Mark(MarkKind.LOOP, *place, "generate", function.lineno, Event.NONE)


def patched(name: str, old: str, new: str, program: Path = PROGRAM) -> Finding:
    """A finding with a patch of the program, at the last place of a text."""
    start = program.read_text().rindex(old)
    fix = Fix(name, Safety.SAFE, (Edit(start, start + len(old), new),))
    return Finding(
        id=name, rule=name, name=name, path=str(program), span=Span(1, 1, 1, 2), function="forward",
        message="", why=(), root_cause=RootCause.RUNTIME, frequency="step", confidence=Confidence.HIGH, fix=fix,
    )  # fmt: skip


NOTHING = ("nothing", _STEP, _STEP.replace("\n", " if True else x\n"))
PATCHES = (
    NOTHING,
    ("5 % of a step", "range(self.waste)", "range(0)"),
    ("nothing, in a constructor", "self.waste = waste", "self.waste = int(waste)"),
    ("5 % of a step, in a constructor", "self.waste = waste", "self.waste = 0"),
)


def trial(patch: tuple[str, str, str]) -> Any:
    """What the tool tries."""
    return trial_of([patched(*patch)], lambda p: Source.decode(p, Path(p).read_bytes()), patch[0])


class Recorder:
    """Launches the program with equal code and adds to a file of series."""

    def __init__(self, path: str, words: list[str]) -> None:
        self.path = Path(path)
        self.data: dict[str, Any] = json.loads(self.path.read_text()) if self.path.exists() else {}
        self.words = words
        self.trial = trial(NOTHING)

    def launch(self, requests: int, request: Request) -> Any:
        """Once. An interruption ends the recording."""
        words = [sys.executable, str(PROGRAM), "--requests", str(requests), *self.words]
        launcher = Launcher(words, plan([], [Loop()]), {"max_wait": 120.0}, say)
        launched = launcher.launch(request)
        if launcher.interrupted:
            sys.exit("interrupted: the file holds what was recorded until then")
        return launched

    def write(self, route: str, what: Any) -> None:
        """Add to the file, whole at any time."""
        self.data[route] = what
        self.path.write_text(json.dumps(self.data) + "\n")

    def none(self, seconds: float) -> None:
        """Rounds in one process."""
        request = Request((Wish(self.trial, seconds, compare=False),), seconds + 60, 1)
        series = Series()
        launched = self.launch(1_000_000, request)
        if not series.add(launched.parts(0), 1):
            sys.exit(f"nothing was measured: {launched.stopped} {launched.errors} {launched.parts(0)}")
        self.write("none", {"seconds": series.seconds, "rounds": _rounds(series)})

    def instance(self, builds: int, seconds: float) -> None:
        """Rounds of three instances side by side, rebuilt again and again."""
        held = self.data.get("instance") or {"seconds": seconds, "builds": []}
        for number in range(builds):
            order = tuple(np.random.default_rng(number).permutation(["A", "A2", "B"]).tolist())
            wish = Wish(self.trial, seconds, compare=False)
            launched = self.launch(1_000_000, Request((wish,), seconds + 60, number, "instance", order=order))
            series = Series()
            if series.add(launched.parts(0), number):
                held["builds"].append(_rounds(series))
                self.write("instance", held)
            else:
                say(f"a build gave nothing: {launched.stopped} {launched.errors} {launched.parts(0)}")

    def process(self, processes: int) -> None:
        """Times per unit of whole processes."""
        held = self.data.get("process", [])
        for number in range(processes):
            wish = Wish(self.trial, 60.0, compare=False)
            launched = self.launch(3, Request((wish,), 60.0, number, "process", "AB"[number % 2]))
            times = max(launched.units, key=len, default=())
            if times:
                held.append(round(trimmed_mean_of(times)))
                self.write("process", held)


def _rounds(series: Series) -> list[list[int]]:
    return [[round(v) for v in row] for row in zip(series.a, series.same, series.b, strict=True)]


def study(path: str) -> None:
    """Print what the tries say."""
    data: dict[str, Any] = json.loads(Path(path).read_text())
    if "none" in data:
        rounds = np.asarray(data["none"]["rounds"], float)
        length = int(len(rounds) * TRY_S / data["none"]["seconds"])
        low, middle, high = np.percentile(rounds, (10, 50, 90)) / 1e6
        print(f"route none: {len(rounds)} rounds in {data['none']['seconds']:.0f} s")
        print(f"  a unit takes {middle:.1f} ms (median; 10th to 90th percentile {low:.1f} to {high:.1f})")
        print(f"  {TRIES} tries of {TRY_S:g} s, {length} rounds each")
        _tries("none", _of_rounds(rounds, length))
    builds = [np.asarray(b, float) for b in (data.get("instance") or {"builds": ()})["builds"] if len(b) >= 2]
    if len(builds) >= 2 * BUILDS:
        apart = [100 * abs(np.diff([np.median(b[:, n]) for n in (0, 1)])[0]) / np.median(b) for b in builds]
        print(f"route instance: {len(builds)} builds of {data['instance']['seconds']:g} s")
        print(
            f"  rounds in a build: {min(map(len, builds))} to {max(map(len, builds))}, {sum(map(len, builds))} in all"
        )
        print(f"  instances of equal code, the medians of two in a build: {np.median(apart):.1f} % apart (median)")
        print(f"  {TRIES} tries of {BUILDS} builds")
        _tries("instance", _of_builds(builds))
    alone = np.asarray(data.get("process", ()), float)
    if len(alone) >= 6 * MIN_PROCESSES:
        spread = 100 * alone.std() / alone.mean()
        print(f"route process: {len(alone)} processes of equal code, {spread:.1f} % apart (1 sigma)")
        print(f"  {TRIES} tries of {MIN_PROCESSES} rounds of three processes")
        _tries("process", _of_processes(alone))


Try = tuple[Any, Any]  # rounds by arms, and the cluster that each belongs to


def _of_rounds(rounds: Any, length: int) -> Iterator[Try]:
    rng = np.random.default_rng(11)
    while True:
        start = int(rng.integers(0, max(1, len(rounds) - length)))
        yield rng.permuted(rounds[start : start + length], axis=1), None


def _of_builds(builds: list[Any]) -> Iterator[Try]:
    rng = np.random.default_rng(11)
    while True:
        start = int(rng.integers(0, len(builds) - BUILDS + 1))
        pieces = [build[:, rng.permutation(3)] for build in builds[start : start + BUILDS]]
        yield np.concatenate(pieces), [number for number, piece in enumerate(pieces) for _ in piece]


def _of_processes(alone: Any) -> Iterator[Try]:
    rng = np.random.default_rng(11)
    while True:
        # Neighbours: the machine of the same minutes.
        start = int(rng.integers(0, len(alone) - 3 * MIN_PROCESSES + 1))
        piece = rng.permuted(alone[start : start + 3 * MIN_PROCESSES].reshape(MIN_PROCESSES, 3), axis=1)
        yield piece, range(MIN_PROCESSES)


def _tries(route: str, pieces: Iterator[Try]) -> None:
    drawn = [next(pieces) for _ in range(TRIES)]
    for gain in GAINS:
        found = [
            effect(piece[:, 0], piece[:, 1], piece[:, 2] * (1 - gain / 100), clusters, seed=number)
            for number, (piece, clusters) in enumerate(drawn)
        ]
        print(f"  {gain:+.0f} %: {_said(found, gain, route)}")


def _said(found: list[Effect], gain: float, route: str) -> str:
    covered = sum(e.saving.low <= gain <= e.saving.high for e in found) / len(found)
    excluded = sum(e.saving.excludes_zero for e in found) / len(found)
    reversed_ = sum((e.saving.high < 0 < gain) or (gain < 0 < e.saving.low) for e in found)
    half = np.median([e.saving.half for e in found])
    verdicts = Counter(judge(e, TRY_S, route).verdict.value for e in found)
    return (
        f"covered {covered:.1%}, 0 excluded {excluded:.1%}, reversed {reversed_}, half width {half:.2f} %: "
        + ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in verdicts.most_common())
    )


def live(tries: int, library: str, device: str) -> None:
    """Patches of known effect, proven by the tool itself, one after the other."""
    from awp_lint.detector.verification.prove import prove

    command = [sys.executable, str(PROGRAM), "--requests", "1000000", "--layers", str(20 * _WASTE - _WASTE)]
    command += ["--waste", str(_WASTE), "--library", library, "--device", device]
    for number in range(tries):
        for patch in PATCHES:
            findings = [patched(*patch)]
            proof = prove(
                findings, [Loop()], command, {"max_wait": 120.0}, lambda p: Source.decode(p, Path(p).read_bytes()),
                TRY_S + 15, report=lambda line: None,
            )  # fmt: skip
            (found,) = proof.by_finding.values()
            print(f"{patch[0]}, try {number + 1}: {words(found)} ({found.pairs} rounds)", flush=True)


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--record", metavar="FILE")
    parser.add_argument("--study", metavar="FILE")
    parser.add_argument("--live", type=int, metavar="TRIES")
    parser.add_argument("--route", choices=ROUTES, default="none")
    parser.add_argument("--seconds", type=float, default=240.0, help="of the route none")
    parser.add_argument("--builds", type=int, default=40, help="of the route instance")
    parser.add_argument("--each", type=float, default=8.0, help="seconds of a build (default %(default)s)")
    parser.add_argument("--processes", type=int, default=60, help="of the route process")
    parser.add_argument("--layers", type=int, default=400, help="of the program: a step of 25 ms (default %(default)s)")
    parser.add_argument("--library", choices=("torch", "numpy"), default="torch")
    parser.add_argument("--device", default="cpu")
    args = parser.parse_args()
    files = {name: os.path.abspath(getattr(args, name) or "") for name in ("record", "study")}
    os.chdir(PROGRAM.parent)
    if args.record:
        words = ["--layers", str(args.layers), "--library", args.library, "--device", args.device]
        recorder = Recorder(files["record"], words)
        if args.route == "none":
            recorder.none(args.seconds)
        elif args.route == "instance":
            recorder.instance(args.builds, args.each)
        else:
            recorder.process(args.processes)
    if args.study:
        study(files["study"])
    if args.live:
        live(args.live, args.library, args.device)


if __name__ == "__main__":
    main()
