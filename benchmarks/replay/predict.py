"""Predictions against measurements: every planted statement of ``steps.py``, profiled once, then mended for real.

    python benchmarks/replay/predict.py                     all programs on the accelerator
    python benchmarks/replay/predict.py decode --keep DIR   keep sessions and traces

A prediction is a share of the step, as the tool prints it: hosts drift between a profile and a measurement. A hit is
one within the larger of 15 % of the change, half the measurement's interval and 1 % of the step. Two null predictors
are scored beside it: nothing is gained, and the statement's own host time is. The gain is measured before and behind
the profile run, in the process that is profiled. Where the replay does not reproduce the step or the statement, the
tool prints no prediction but «at most»; of those is counted how many hold. For each program stands what the gate says
of it, and of how many of its statements the replay gives the measured time.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from measure import awaited, save, table

from awp_lint.detector.finding import (
    Confidence,
    Event,
    Evidence,
    Finding,
    Mark,
    MarkKind,
    RootCause,
    Span,
)
from awp_lint.detector.profiling.attach import attached, control_folder
from awp_lint.detector.profiling.costs import process_costs
from awp_lint.detector.profiling.evidence import by_place, pool
from awp_lint.detector.profiling.kineto import load
from awp_lint.detector.profiling.launch import Plan
from awp_lint.detector.profiling.replay import run
from awp_lint.detector.profiling.run import ProfileOutcome, analyse, digests, plan, run_options
from awp_lint.detector.profiling.session import Session
from awp_lint.detector.profiling.telemetry import Telemetry
from awp_lint.detector.profiling.verdicts import REPLAY

Pairs = dict[str, np.ndarray]  # by statement: ms of a unit with and without it, shape (pairs, 2)
STEPS = Path(__file__).resolve().parent / "steps.py"
PROGRAMS = (
    "decode", "batch", "balanced", "device", "recorded", "small", "deep", "wide", "prefill", "compiled", "large",
    "free", "overlap", "selected", "captured", "token", "router", "kept", "shown",
    "replayed", "normed", "passed",
)  # fmt: skip
FUSED = {"norm"}  # kernels that no trace has stand for those of the trace: scored apart


@dataclass(frozen=True)
class Loop:
    """The loop that counts steps, as the static half would give it."""

    path: str
    module: str
    mark: Mark
    unit: str


def planted() -> tuple[list[Finding], Loop]:
    """A finding for every planted statement, and the step loop."""
    source = STEPS.read_text()
    lines, tree = source.splitlines(), ast.parse(source)
    functions = {
        node.lineno: (node, f"{parent.name}.{node.name}" if isinstance(parent, ast.ClassDef) else node.name)
        for parent in ast.walk(tree)
        for node in ast.iter_child_nodes(parent)
        if isinstance(node, ast.FunctionDef)
    }
    findings: list[Finding] = []
    loop: Loop | None = None
    for node, name in functions.values():
        for inner in ast.walk(node):
            if not isinstance(inner, ast.stmt) or inner is node or inner.end_lineno is None:
                continue
            if name == "generate" and isinstance(inner, ast.For):
                loop = Loop(str(STEPS), "__main__", _mark(inner, MarkKind.LOOP, node, name, Event.NONE), "step")
            found = re.search(r"# planted: (\w+) (\w+) (\w+)", lines[inner.lineno - 1])
            if found is not None and inner.lineno == inner.end_lineno:
                mark = _mark(inner, MarkKind.STATEMENT, node, name, Event[found[2]])
                span = Span(inner.lineno, inner.col_offset + 1, inner.end_lineno, (inner.end_col_offset or 0) + 1)
                cause = RootCause(found[3])
                findings.append(
                    Finding(
                        found[1],
                        found[2],
                        found[1],
                        str(STEPS),
                        span,
                        name,
                        "",
                        (),
                        cause,
                        "token",
                        Confidence.HIGH,
                        mark,
                    )
                )
    assert loop is not None
    return findings, loop


def _mark(node: ast.stmt, kind: MarkKind, function: ast.FunctionDef, name: str, event: Event) -> Mark:
    return Mark(
        kind, node.lineno, node.col_offset, node.end_lineno or 0, node.end_col_offset or 0, name, function.lineno, event
    )


def tried(
    program: str, seconds: float, pairs: int, block: float, keep: Path | None, lock: Path | None
) -> tuple[ProfileOutcome, str, list[Pairs]]:
    """What the tool says of the program, what its replay's gate does, and what was measured before and behind the
    profile run. All of one process: on a shared host, processes of equal code differ by more than what is planted."""
    findings, loop = planted()
    marks = plan(findings, [loop])
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        awp = [sys.executable, "-m", "awp_lint", "--agent", sys.executable, str(STEPS), program]
        how = ["--around", str(folder), "--pairs", str(pairs), "--block", str(block)]
        how += ["--lock", str(lock)] if lock is not None else []
        with subprocess.Popen([*awp, *how]) as serving:
            try:
                before = _pairs(awaited(folder / "before.json", serving))
                settings = run_options({"duration": seconds}, "")
                how_run = Plan(tuple(marks), digests(marks))
                with Telemetry() as telemetry, attached(str(serving.pid), how_run, settings) as session:
                    summary = telemetry.summary(session)
                    if keep is not None:
                        shutil.copytree(control_folder(str(serving.pid)) / "runs" / "1", keep, dirs_exist_ok=True)
                    (folder / "profiled").touch()
                    after = _pairs(awaited(folder / "after.json", serving))
                    there = [finding for finding in findings if finding.id in before]
                    said = "; ".join([gate(session, there, loop.unit), *map(_device, summary["devices"])])
                    return analyse(session, there, summary), said, [before, after]
            finally:
                if serving.poll() is None:
                    serving.terminate()


def _device(summary: dict[str, Any]) -> str:
    """Clocks and power of a device, and why it was held back."""
    held = ", ".join(f"{word} in {share:.0%} of samples" for word, share in summary["throttled"].items())
    clock, power = summary.get("sm_clock_mhz", 0.0), summary.get("power_w", 0.0)
    return f"{clock:.0f} MHz, {power:.0f} W{f', {held}' if held else ''}"


def _pairs(rows: list[dict[str, Any]]) -> Pairs:
    return {row["name"]: np.array([row["with"], row["without"]]).T for row in rows}


def gate(session: Session, findings: list[Finding], unit: str) -> str:
    """Whether the replay reproduces the unedited step, and which of the statements."""
    found = [(p, c) for p in session.processes if (c := process_costs(p, unit, load)).whatif.model is not None]
    if not found:
        return "no replay"
    process, costs = found[0]
    model = costs.whatif.model
    assert model is not None
    runs = [run(p, host[0]) for p, host in zip(model.programs, model.hosts, strict=True)]
    ms, gap = (float(np.mean([getattr(r, name) for r in runs])) for name in ("unit_ms", "gap"))
    busy = 1 - float(costs.facts.busy_ms.mean()) / costs.time.mean_ms
    told = [f"step {ms:.3f} ms of {costs.time.mean_ms:.3f}, gap ratio {gap:.2f} of {busy:.2f}"]
    told += [f"refused: {error}" for error in model.errors] or ["passed"]
    right = []
    for finding in findings:
        assert finding.mark is not None
        here = pool(by_place([(process, costs)], str(Path(finding.path).resolve()), finding.mark), unit)
        if here.call_ms is not None and model.reproduces(here.mark, here.call_ms):
            right.append(finding.id)
    return "; ".join([*told, f"{len(right)} of {len(findings)} statements: {' '.join(right)}"])


def gained(series: list[np.ndarray]) -> tuple[float, float, float, float]:
    """Unit ms with a statement, gain in ms, and the gain's 95 % interval, from the pairs of several series.

    Of each series the mean of the middle half of the differences counts: what else runs on the host disturbs single
    blocks. The interval is the bootstrap over pairs, and reaches at least to each series' own figure: hosts drift.
    """
    rng = np.random.default_rng(0)
    differences = [pairs[:, 0] - pairs[:, 1] for pairs in series]
    single = [float(_middle(d[None, :])[0]) for d in differences]
    draws = np.mean([_middle(rng.choice(d, (2000, d.size))) for d in differences], axis=0)
    low, high = np.percentile(draws, [2.5, 97.5])
    unit = float(np.mean([np.median(pairs[:, 0]) for pairs in series]))
    return unit, float(np.mean(single)), min(float(low), *single), max(float(high), *single)


def _middle(values: np.ndarray) -> np.ndarray:
    """Means of the middle halves of rows."""
    ordered, cut = np.sort(values, axis=1), values.shape[1] // 4
    return ordered[:, cut : values.shape[1] - cut].mean(axis=1)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", default=PROGRAMS)
    parser.add_argument("--seconds", type=float, default=15.0)
    parser.add_argument(
        "--pairs", type=int, default=40, help="of blocks, before and behind the run each (default %(default)s)"
    )
    parser.add_argument("--block", type=float, default=0.05, help="seconds of a measured block (default %(default)s)")
    parser.add_argument(
        "--lock", type=Path, help="programs of one lock file take turns: start and analysis do not count"
    )
    parser.add_argument("--keep", type=Path, help="folder for sessions and traces")
    parser.add_argument("--results", type=Path, help="append the results to this file, a line a statement")
    parser.add_argument("--sum", type=Path, nargs="+", help="only the table and the sums of such files")
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    options = parser.parse_args()
    rows = [["statement", "verdict", "unit", "predicted", "low", "high", "measured", "low", "high", "host", "hit"]]
    results: list[dict[str, Any]] = []
    if options.sum:
        results = [json.loads(line) for file in options.sum for line in file.read_text().splitlines()]
        print(table([*rows, *([str(cell) for cell in r["row"]] for r in results)]) + "\n" + _summary(results))
        return 0
    for program in options.programs:
        keep = options.keep / program if options.keep else None
        outcome, said, truth = tried(program, options.seconds, options.pairs, options.block, keep, options.lock)
        print(f"{program}: the gate: {said}", flush=True)
        print(
            program,
            json.dumps(
                {
                    k: v
                    for k, v in outcome.profile.items()
                    if k in ("unit_ms", "gap_ratio", "overhead", "trusted", "reasons", "flops", "mfu", "mfu_busy")
                }
            ),
            outcome.notes,
        )
        for name in truth[0]:
            unit, gain, low, high = gained([one[name] for one in truth])
            evidence = outcome.evidence[name]
            results.append(_scored(program, name, evidence, unit, gain, low, high))
            rows.append([str(cell) for cell in results[-1]["row"]])
            print(*rows[-1], evidence.reason, flush=True)
            if options.results:
                with options.results.open("a") as file:
                    file.write(json.dumps(results[-1]) + "\n")
    text = table(rows) + "\n" + _summary(results)
    print(text)
    if options.save:
        save("replay", {"results": results}, text)
    return 0


def _scored(
    program: str, name: str, evidence: Evidence, unit: float, gain: float, low: float, high: float
) -> dict[str, Any]:
    saving = evidence.predicted_saving
    predicted = saving.pct / 100 * unit if saving is not None else 0.0
    allowed = max(0.15 * abs(gain), (high - low) / 2, 0.01 * unit)
    hit = abs(predicted - gain) <= allowed
    ends = (saving.low_pct / 100 * unit, saving.high_pct / 100 * unit) if saving is not None else (0.0, 0.0)
    host = evidence.host_ms or 0.0
    figures = [f"{value:.3f}" for value in (unit, predicted, *ends, gain, low, high, host)]
    replayed = saving is not None and saving.assumption.startswith(REPLAY)
    how = ("yes" if hit else "no") if replayed else "at most" if saving is not None else "none"
    row = [f"{program}.{name}", evidence.verdict.value, *figures, how]
    return {
        "told": saving is not None, "program": program, "name": name, "verdict": evidence.verdict.value,
        "reason": evidence.reason, "unit_ms": unit, "predicted_ms": predicted, "replayed": replayed,
        "range_ms": ends, "measured_ms": gain, "interval_ms": (low, high), "host_ms": host, "hit": hit, "row": row,
    }  # fmt: skip


def _summary(asked: list[dict[str, Any]]) -> str:
    """Of the statements that a saving was predicted for; the others are counted, not scored."""
    results = [r for r in asked if r["replayed"] and r["name"] not in FUSED]
    apart = [r for r in asked if r["replayed"] and r["name"] in FUSED]
    bounds = [r for r in asked if r["told"] and not r["replayed"]]
    held = sum(r["interval_ms"][0] <= r["range_ms"][1] for r in bounds)
    told = len(results) + len(apart)
    said = (
        f"{len(asked)} statements: a saving was predicted for {told}, for {len(bounds)} «at most», of which {held} hold"
    )
    if apart:
        said += (
            f"\nkernels that others stand for, scored apart: {sum(bool(r['hit']) for r in apart)} of {len(apart)} hits"
        )
    if len(results) < 2:
        return said
    hits = sum(bool(r["hit"]) for r in results)
    large = [
        r for r in results
        if r["measured_ms"] >= 0.05 * r["unit_ms"] and r["interval_ms"][1] - r["interval_ms"][0] <= 0.03 * r["unit_ms"]
    ]  # fmt: skip

    def error(key: str | None) -> float:
        return float(np.mean([abs((float(r[key]) if key else 0.0) - float(r["measured_ms"])) for r in results]))

    inside = sum(r["range_ms"][0] <= r["measured_ms"] <= r["range_ms"][1] for r in results)
    meet = sum(r["range_ms"][0] <= r["interval_ms"][1] and r["range_ms"][1] >= r["interval_ms"][0] for r in results)
    width = np.median([100 * (r["range_ms"][1] - r["range_ms"][0]) / r["unit_ms"] for r in results])
    half = np.median([50 * (r["interval_ms"][1] - r["interval_ms"][0]) / r["unit_ms"] for r in results])
    predicted, measured = (_ranks([r[key] for r in results]) for key in ("predicted_ms", "measured_ms"))
    return (
        f"{said}\nmeasured gains of 5 % and more with a half-width of 1.5 % or less: {len(large)}, of which "
        f"{sum(bool(r['hit']) for r in large)} hits, in {len({r['program'] for r in large})} programs and "
        f"{len({r['name'] for r in large})} kinds\n"
        f"printed ranges: {inside} of {len(results)} hold the measured gain, {meet} meet its interval; median width "
        f"{width:.2f} % of the step; measured intervals: half {half:.2f} %; rank correlation "
        f"{np.corrcoef(predicted, measured)[0, 1]:.2f}\n"
        f"{hits} of {len(results)} hits; mean error {error('predicted_ms'):.3f} ms, of the null predictors: "
        f"nothing {error(None):.3f} ms, host time {error('host_ms'):.3f} ms"
    )


def _ranks(values: list[float]) -> np.ndarray:
    return np.argsort(np.argsort(values)).astype(float)


if __name__ == "__main__":
    raise SystemExit(main())
