"""Holds a profile run's JSON report against a program's own truth and prints a table.

    cd corpus/planted
    python decode.py --device cuda --size gpu --truth > truth-decode.json
    awp-lint decode.py --format json --output report.json --profile python decode.py --device cuda --size gpu
    python ../../benchmarks/profile/planted.py truth-decode.json report.json [--save planted-decode]

or, for all programs one after the other, each in one process that is attached to, a timed copy beside the profiled one:

    python benchmarks/profile/planted.py --all --device cuda --size gpu --seconds 20 [--save planted]

Exact: calls, launches (kernels and copies) and bytes per unit. Within a tolerance: host time, against the mean of the
truth without the largest and smallest tenth; with ``--all`` the mean ratio over rounds, with its 95 % interval.
Findings at places that are not planted are listed, not judged.
"""

from __future__ import annotations

import argparse
import ast
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
HERE = ROOT / "corpus" / "planted"
SHORT_S = 6.0  # of a profile run beside which the copy is timed
T95 = {2: 12.7, 3: 4.3, 4: 3.18, 5: 2.78, 6: 2.57, 7: 2.45, 8: 2.36, 9: 2.31, 10: 2.26, 11: 2.23, 12: 2.2}
AWP = (sys.executable, "-m", "awp_lint")
PROGRAMS = ("decode", "sampler", "detect", "embed")
sys.path[:0] = [str(ROOT / "benchmarks"), str(HERE)]

from measure import awaited, save, table  # noqa: E402
from truth import locate, plants  # noqa: E402

from awp_lint.detector.config import Settings  # noqa: E402
from awp_lint.detector.finding import Confidence  # noqa: E402
from awp_lint.detector.profiling.attach import attached  # noqa: E402
from awp_lint.detector.profiling.launch import Plan  # noqa: E402
from awp_lint.detector.profiling.run import analyse, digests, plan, run_options  # noqa: E402
from awp_lint.detector.profiling.session import WindowKind  # noqa: E402
from awp_lint.detector.profiling.units import steady  # noqa: E402
from awp_lint.detector.reporting.json_report import evidence_dict, finding_dict  # noqa: E402
from awp_lint.detector.scan import scan  # noqa: E402

EXACT = 1e-3  # relative; covers a report's rounding


def place_of(finding: dict[str, Any], program: Path, tree: ast.Module) -> str | None:
    """The id of the plant that a finding is about."""
    for plant in plants(program):
        statement, call = locate(tree, plant)
        rules = {plant.rule, *plant.accepts}
        if rules.isdisjoint({finding["rule"], *finding["also"]}) or finding["function"] != plant.function:
            continue
        if call is not None and plant.covers == "call":
            spot = (finding["line"], finding["column"] - 1)
            if spot == (call.lineno, call.col_offset) or spot == (statement.lineno, statement.col_offset):
                return plant.id
        elif finding["line"] <= _last_line(statement) and finding["end_line"] >= statement.lineno:
            return plant.id
    return None


def _last_line(statement: ast.stmt) -> int:
    body = getattr(statement, "body", None)
    return body[0].lineno - 1 if body else statement.end_lineno or statement.lineno


def compare(program: Path, truth: dict[str, Any], report: dict[str, Any]) -> dict[str, Any]:
    """One row a plant, and what else was found."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    by_plant: dict[str, dict[str, Any]] = {}
    others = []
    for finding in report["findings"]:
        plant = place_of(finding, program, tree)
        if plant is not None and plant not in by_plant:
            by_plant[plant] = finding
        else:
            others.append(f"{finding['rule']} line {finding['line']} {finding['function']}")
    rows = []
    for plant in truth["plants"]:
        row = _row(plant, by_plant.get(plant["id"]))
        if truth["device"] == "cpu":  # nothing is launched and nothing crosses
            row = {key: value for key, value in row.items() if key not in ("launches", "h2d", "d2h", "blocked_ms")}
        rows.append(row)
    profile = report.get("profile") or {}
    unit_truth = {"step": truth["step_ms"], "request": truth["request_ms"]}.get(str(profile.get("unit")))
    busy = profile.get("gpu_busy_ms")
    return {
        "program": program.stem,
        "device": truth["device"],
        "rows": rows,
        "not_planted": others,
        "unit": profile.get("unit"),
        "unit_ms": profile.get("unit_ms"),
        "unit_ms_truth": unit_truth,
        "gap_ratio": profile.get("gap_ratio"),
        "gap_ratio_truth": 1 - busy / unit_truth if busy is not None and unit_truth else None,
        "trusted": profile.get("trusted"),
        "reasons": profile.get("reasons"),
    }


def _row(plant: dict[str, Any], finding: dict[str, Any] | None) -> dict[str, Any]:
    row: dict[str, Any] = {"id": plant["id"], "rule": plant["rule"], "what": plant["call"] or plant["code"]}
    evidence = (finding or {}).get("evidence")
    row["found"] = finding is not None
    row["line"] = finding["line"] if finding else None
    row["verdict"] = evidence["verdict"] if evidence else None
    if evidence is None or evidence["unit"] not in ("step", "request", "call"):
        return row
    per_unit = {"step": plant["per_step"], "request": plant["per_request"], "call": 1.0}[evidence["unit"]]
    row["unit"] = evidence["unit"]
    row["per_unit"] = per_unit
    row["calls"] = (per_unit, evidence["calls_per_unit"])
    if plant["kernels"] is not None and plant["copies"] is not None:
        row["launches"] = ((plant["kernels"] + plant["copies"]) * per_unit, evidence["launches"])
    for name, key in (("h2d", "h2d_bytes"), ("d2h", "d2h_bytes")):
        if plant[name] is not None:
            row[name] = (plant[name] * per_unit, evidence["copies"][key])
    if plant["host_ms"]:
        row["host_ms"] = (plant["host_ms"]["trimmed"] * per_unit, evidence["host_ms"])
    if evidence.get("call_ms") and plant["covers"] != "iteration":
        row["call_ms"] = (plant["host_ms"]["median"], evidence["call_ms"]["p50"])
    if plant["pending_wait_ms"]:
        row["blocked_ms"] = (plant["pending_wait_ms"]["trimmed"] * per_unit, evidence["blocked_ms"])
    return row


def exact(pair: tuple[float, float | None]) -> str:
    """Expected and reported number, with a mark where they differ; a report without the number says so."""
    expected, got = pair
    if got is None:
        return f"{expected:g} / -"
    good = abs(expected - got) <= EXACT * max(abs(expected), 1e-9) + 1e-9
    return f"{expected:g}" if good else f"{expected:g} / {got:g} !"


def near(pair: tuple[float, float | None], off: tuple[float, float, int] | None = None) -> str:
    """Expected and reported time, and by how much they differ, with the half 95 % interval of several rounds."""
    expected, got = pair
    if got is None:
        return f"{expected:.4f} / -"
    if off is not None:
        return f"{expected:.4f} / {got:.4f} ({off[0]:+.1%} ± {off[1]:.1%}, {off[2]})"
    alone = (got - expected) / expected if expected else 0.0
    return f"{expected:.4f} / {got:.4f} ({alone:+.0%})"


def show(result: dict[str, Any]) -> str:
    heading = ["plant", "rule", "verdict", "unit", "calls", "launches", "h2d B", "d2h B", "host ms true / said",
               "median of a call"]  # fmt: skip
    rows = [heading]
    for row in result["rows"]:
        cells = [exact(row[key]) if key in row else "" for key in ("calls", "launches", "h2d", "d2h")]
        times = [near(row[key], row.get(f"{key}_off")) if key in row else "" for key in ("host_ms", "call_ms")]
        verdict = row["verdict"] or ("no evidence" if row["found"] else "NOT FOUND")
        rows.append([f"{row['id']} {row['what'][:40]}", row["rule"], verdict, row.get("unit", ""), *cells, *times])
    found = sum(row["found"] for row in result["rows"])
    lines = [f"{result['program']} on {result['device']}: {found} of {len(result['rows'])} planted places found"]
    if result["unit_ms"] is not None and result["unit_ms_truth"]:
        lines.append(f"{result['unit']}: true {result['unit_ms_truth']:.3f} ms, said {result['unit_ms']:.3f} ms")
    if result["gap_ratio"] is not None and result["gap_ratio_truth"] is not None:
        lines.append(f"gap ratio: true {result['gap_ratio_truth']:.3f}, said {result['gap_ratio']:.3f}")
    lines.append(table(rows))
    if result["not_planted"]:
        lines.append("elsewhere: " + "; ".join(result["not_planted"]))
    return "\n".join(lines)


def tally(results: list[dict[str, Any]], tolerance: float) -> str:
    """The counts that the table is read for."""
    checks = {name: [0, 0] for name in ("found", "calls", "launches", "bytes")}
    for row in (row for result in results for row in result["rows"]):
        _count(checks["found"], row["found"])
        for key, name in (("calls", "calls"), ("launches", "launches"), ("h2d", "bytes"), ("d2h", "bytes")):
            if key in row and row[key][1] is not None:
                _count(checks[name], exact(row[key])[-1] != "!")
        for key, name in (("host_ms", "host time"), ("call_ms", "median of a call")):
            if key in row and row[key][1] is not None:
                true, said = row[key]
                off = row.get(f"{key}_off", (said / true - 1, 0.0, 1))
                _count(checks.setdefault(name, [0, 0]), abs(off[0]) <= tolerance)
                if f"{key}_off" in row:
                    _count(checks.setdefault(f"{name}'s interval", [0, 0]), abs(off[0]) - off[1] <= tolerance)
    return ", ".join(f"{name} {good}/{total}" for name, (good, total) in checks.items()) + (
        f" (times within {tolerance:.0%})"
    )


def _count(pair: list[int], good: bool) -> None:
    pair[0] += good
    pair[1] += 1


def run_all(names: list[str], options: list[str], duration: float, rounds: int) -> list[dict[str, Any]]:
    """Truth, a profile run for all counts, and ``rounds`` short ones for host times, for each program: one process
    each, which is attached to. In the short ones the program does its requests in turns with a copy of itself that no
    profile run sees and that is timed; a host time is the mean over the rounds, with the interval of its ratio to the
    copy's."""
    results = []
    for name in names:
        program = HERE / f"{name}.py"
        with tempfile.TemporaryDirectory() as scratch:
            folder = Path(scratch)
            command = [*AWP, "--agent", sys.executable, str(program), *options, "--around", str(folder)]
            with subprocess.Popen(command, stdout=subprocess.DEVNULL) as serving:
                try:
                    before = awaited(folder / "before.json", serving)
                    result = compare(program, before, _profile(program, serving.pid, duration, folder))
                    (folder / "counted").touch()
                    times: list[list[Any]] = []
                    said: list[dict[str, Any]] = []
                    for turn in range(rounds):
                        report, stretches = _briefly(program, serving.pid)
                        said.append(compare(program, before, report))
                        made = folder / "profiled.part"
                        made.write_text(json.dumps(stretches), encoding="utf-8")
                        made.rename(folder / f"profiled-{turn}.json")
                        times.append(awaited(folder / f"timed-{turn}.json", serving))
                    (folder / "done").touch()
                finally:
                    if serving.poll() is None:
                        serving.terminate()
        _in_turns(result, times, said)
        results.append(result)
        print(show(result), end="\n\n", flush=True)
    return results


def _profile(program: Path, pid: int, duration: float, folder: Path) -> dict[str, Any]:
    """The report of a profile run of a program that runs."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    own = [str(program), "--isolated", "--confidence", "low", "--format", "json", "--output", str(report)]
    attach = ["--attach", str(pid), "--warmup", "0", "--duration", str(duration)]
    done = subprocess.run([*AWP, *own, *attach], capture_output=True, text=True)
    if not report.exists():
        raise SystemExit(f"planted.py: {program.name}: exit {done.returncode}: {done.stderr[-2000:]}")
    return dict(json.loads(report.read_text(encoding="utf-8")))


def _briefly(program: Path, pid: int) -> tuple[dict[str, Any], list[tuple[int, int]]]:
    """A short profile run: its findings with their evidence, and the stretches that its host times are of."""
    found = scan([str(program)], Settings(confidence=Confidence.LOW, cache=False))
    marks = plan(found.findings, found.units)
    settings = run_options({"duration": SHORT_S, "warmup": 0}, "")
    with attached(str(pid), Plan(tuple(marks), digests(marks)), settings) as session:
        outcome = analyse(session, found.findings)
    findings = [
        {**finding_dict(finding), "evidence": evidence_dict(outcome.evidence.get(finding.id))}
        for finding in found.findings
    ]
    chosen = [steady(process.windows)[0] for process in session.processes]
    stretches = {
        (window.start_ns, window.end_ns) for rounds in chosen for one in rounds for window in one.of(WindowKind.MARKS)
    }
    return {"findings": findings, "profile": outcome.profile}, sorted(stretches)


def _in_turns(result: dict[str, Any], times: list[list[Any]], said: list[dict[str, Any]]) -> None:
    """Replace the host times of a result by those of the rounds: means of a unit, medians of an execution."""
    for number, row in enumerate(result["rows"]):
        shorter = [one["rows"][number] for one in said]
        for key, of in (("host_ms", "mean"), ("call_ms", "median")):
            pairs = [
                (true[number][of] * (one["per_unit"] if key == "host_ms" else 1.0), one[key][1])
                for true, one in zip(times, shorter, strict=True)
                if true[number] is not None and one.get(key, (0, None))[1] is not None
            ]
            if len(pairs) > 1:
                ratios = [got / true - 1 for true, got in pairs]
                half = T95[min(len(pairs), 12)] * statistics.stdev(ratios) / len(pairs) ** 0.5
                row[key] = tuple(statistics.fmean(column) for column in zip(*pairs, strict=True))
                row[f"{key}_off"] = (statistics.fmean(ratios), half, len(pairs))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("truth", nargs="?", type=Path, help="what a program's --truth printed")
    parser.add_argument("report", nargs="?", type=Path, help="the report of a profile run of the same program")
    parser.add_argument("--all", action="store_true", help="run everything: each program's truth and a profile run")
    parser.add_argument("--only", choices=PROGRAMS, action="append", help="with --all: only this program")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--size", choices=("cpu", "gpu"), default="cpu")
    parser.add_argument("--seconds", default="20", help="of truth")
    parser.add_argument("--duration", type=float, default=20.0, help="seconds of the first attached profile run")
    parser.add_argument("--rounds", type=int, default=8, help="short profile runs, for host times (default: 8)")
    parser.add_argument("--tolerance", type=float, default=0.05, help="of host times (default: 0.05)")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    args = parser.parse_args()
    if args.all:
        options = ["--device", args.device, "--size", args.size, "--seconds", args.seconds]
        results = run_all(args.only or list(PROGRAMS), options, args.duration, args.rounds)
    elif args.truth and args.report:
        truth = json.loads(args.truth.read_text(encoding="utf-8"))
        report = json.loads(args.report.read_text(encoding="utf-8"))
        results = [compare(HERE / f"{truth['program']}.py", truth, report)]
        print(show(results[0]), end="\n\n")
    else:
        parser.error("give a truth file and a report, or --all")
    verdict = tally(results, args.tolerance)
    print(verdict)
    if args.save:
        save(args.save, {"results": results}, "\n\n".join([*map(show, results), verdict]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
