"""The speed-up that the tool's own patches bring to the apps of ``corpus/apps``, each proven by an A/B run.

    python benchmarks/speedup/run.py --size gpu --budget 120 --save speedup-h200
    python benchmarks/speedup/run.py chat detect --size cpu --budget 40

Each app is copied and ``awp-lint --verify --profile`` runs on the copy as on anybody's program: nothing is edited by
hand, no patch is chosen. Printed for each app: what a unit takes, findings against the app's lists (true, false,
missed), patches by verdict, and for each patch what was predicted, what was measured with its interval, whether the
results were equal; at the end all verified patches together, and how far the measured savings lie inside what was
predicted. Apps that are right as they are must stay without a finding.
"""

from __future__ import annotations

import argparse
import json
import math
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import RESULTS, save, table

import apps

#: Requests of one launch, CPU and GPU: a minute or two of work. A program is launched again while the budget lasts.
_REQUESTS = {
    "adapters": (400, 600),
    "chat": (96, 192),
    "clicks": (4000, 20_000),
    "detect": (200, 400),
    "embeddings": (2000, 4000),
    "experts": (150, 100),
    "images": (60, 60),
    "painter": (250, 200),
    "rerank": (150, 400),
    "speculate": (120, 150),
    "summaries": (200, 300),
    "transcribe": (600, 1000),
    "vision": (600, 400),
}
_SIZES = ("cpu", "gpu")


@dataclass(frozen=True)
class Patch:
    """One finding with a patch that was tried. Savings in percent of a unit; None where nothing is known."""

    rule: str
    place: str
    predicted: float | None
    predicted_low: float | None
    predicted_high: float | None
    measured: float | None
    low: float | None
    high: float | None
    pairs: int
    verdict: str
    equality: str

    @property
    def within(self) -> bool | None:
        """Whether what was measured can be what was predicted: the two intervals meet."""
        if None in (self.predicted_low, self.predicted_high, self.low, self.high):
            return None
        assert self.predicted_low is not None and self.predicted_high is not None
        assert self.low is not None and self.high is not None
        return self.low <= self.predicted_high and self.high >= self.predicted_low


@dataclass(frozen=True)
class Result:
    """What one run says of one app. ``error``: why there is nothing else."""

    app: str
    seconds: float
    error: str = ""
    unit: str = ""
    unit_ms: float | None = None
    true: int = 0
    false: int = 0
    missed: int = 0
    tolerated: int = 0
    patches: tuple[Patch, ...] = ()
    joint: dict[str, Any] | None = None
    launches: int = 0
    reasons: tuple[str, ...] = ()
    touched: tuple[str, ...] = ()  # files of the copy that are not as they were

    @property
    def speedup(self) -> float | None:
        """Of all verified patches together: time before, divided by time after."""
        saving = (self.joint or {}).get("saving_pct")
        return None if saving is None or saving >= 100 else 1 / (1 - saving / 100)


def read_report(
    app: str, report: dict[str, Any], score: apps.Score, seconds: float, touched: tuple[str, ...] = ()
) -> Result:
    """The figures of a JSON report."""
    profile = report["profile"] or {}
    proof = profile.get("verification") or {}
    return Result(
        app=app,
        seconds=seconds,
        error=failure(profile),
        unit=profile.get("unit") or "",
        unit_ms=profile.get("unit_ms"),
        true=len({id(finding) for _, finding in score.found}),
        false=len(score.false),
        missed=len(score.missed),
        tolerated=score.tolerated,
        patches=tuple(patch_of(finding) for finding in report["findings"] if finding.get("verification")),
        joint=proof.get("joint"),
        launches=proof.get("launches", 0),
        reasons=tuple(profile.get("reasons") or ()),
        touched=touched,
    )


def failure(profile: Mapping[str, Any]) -> str:
    """Why there are no figures: the program ended with an error before anything could be measured. "" if it did not."""
    code = profile.get("exit_code")
    return f"the program ended with {code}" if code and profile.get("unit_ms") is None else ""


def patch_of(finding: dict[str, Any]) -> Patch:
    """A finding whose patch was tried."""
    proof = finding["verification"]
    saving = (finding["evidence"] or {}).get("predicted_saving") or {}
    return Patch(
        rule=finding["rule"],
        place=f"{Path(finding['path']).name}:{finding['line']}",
        predicted=saving.get("pct"),
        predicted_low=saving.get("low_pct"),
        predicted_high=saving.get("high_pct"),
        measured=proof["saving_pct"],
        low=proof["low_pct"],
        high=proof["high_pct"],
        pairs=proof["pairs"],
        verdict=proof["verdict"].replace("_", " "),
        equality=proof["equality"],
    )


def run(app: Path, size: str, budget: float, requests: int | None) -> Result:
    """One app, copied, scanned, profiled and proven."""
    with tempfile.TemporaryDirectory(prefix="speedup-") as name:
        copy = Path(name).resolve() / app.name
        shutil.copytree(app, copy, ignore=shutil.ignore_patterns("__pycache__", "expert"))
        report = copy.parent / "report.json"
        work = str(requests or _REQUESTS[app.name][_SIZES.index(size)])
        command = [
            *(sys.executable, "-m", "awp_lint", ".", "--isolated", "--no-cache", "--no-ledger", "--exit-zero"),
            *("--format", "json", "--output", str(report), "--verify", "--budget", f"{budget:g}"),
            *("--profile", sys.executable, "main.py", "--size", size, "--requests", work),
        ]
        before = _texts(copy)
        began = time.monotonic()
        done = subprocess.run(command, cwd=copy, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        said = done.stderr.strip()[-300:]
        if done.returncode != 0 or not report.exists():
            return Result(app.name, seconds, error=said or f"exit code {done.returncode}")
        found = json.loads(report.read_text(encoding="utf-8"))
        absolute = [{**finding, "path": str(copy / finding["path"])} for finding in found["findings"]]
        score = apps.score(absolute, apps.load(copy), apps.known_rules())
        after = _texts(copy)
        touched = tuple(sorted(n for n in before.keys() | after.keys() if before.get(n) != after.get(n)))
        result = read_report(app.name, found, score, seconds, touched)
        return replace(result, error=f"{result.error}: {said}") if result.error else result


def _texts(folder: Path) -> dict[str, bytes]:
    """All files of a program, but for Python's caches."""
    files = (path for path in folder.rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# tables --------------------------------------------------------------------------------------------------------------


def range_of(middle: float | None, low: float | None, high: float | None) -> str:
    """A figure with its interval; "at most" where only the interval is known."""
    if middle is None and low is None and high is None:
        return ""
    ends = f" [{low:.1f}, {high:.1f}]" if low is not None and high is not None else ""
    return (f"{middle:+.1f}" if middle is not None else "at most") + ends


def recovered(result: Result, experts: Mapping[str, float]) -> float | None:
    """The share of an expert version's saving that the verified patches bring, None where either is unknown."""
    saving = (result.joint or {}).get("saving_pct")
    expert = experts.get(result.app, 0.0)
    return saving / expert if saving is not None and expert > 0.0 else None


def overview(results: Sequence[Result], experts: Mapping[str, float]) -> str:
    """A row an app; ``experts`` are savings of expert versions in percent."""
    rows = [[
        "app", "unit", "ms", "true", "false", "missed", "tried", "verified", "joint %", "speed-up", "of expert's",
        "launches", "s",
    ]]  # fmt: skip
    for result in results:
        if result.error:
            rows.append([result.app, "failed", *[""] * 10, f"{result.seconds:.0f}"])
            continue
        share = recovered(result, experts)
        joint = result.joint or {}
        rows.append([
            result.app, result.unit, "" if result.unit_ms is None else f"{result.unit_ms:.2f}",
            str(result.true), str(result.false), str(result.missed), str(len(result.patches)),
            str(sum(patch.verdict == "verified" for patch in result.patches)),
            range_of(joint.get("saving_pct"), joint.get("low_pct"), joint.get("high_pct")),
            "" if result.speedup is None else f"{result.speedup:.2f}", "" if share is None else f"{share:.0%}",
            str(result.launches), f"{result.seconds:.0f}",
        ])  # fmt: skip
    return table(rows)


def patches(result: Result) -> str:
    """A row a patch of one app."""
    if result.error:
        return f"{result.app} failed: {result.error}"
    rows = [["patch", "place", "predicted %", "measured %", "pairs", "verdict"]]
    rows += [
        [
            patch.rule, patch.place, range_of(patch.predicted, patch.predicted_low, patch.predicted_high),
            range_of(patch.measured, patch.low, patch.high), str(patch.pairs), patch.verdict,
        ]
        for patch in result.patches
    ]  # fmt: skip
    lines = [f"{result.app}:", table(rows)] if result.patches else [f"{result.app}: no patch was tried"]
    lines += [f"  {patch.rule} {patch.place}: {patch.equality}" for patch in result.patches if patch.equality]
    lines += [f"  profile: {reason}" for reason in result.reasons]
    lines.append(f"  files of the program that were changed: {', '.join(result.touched) or 'none'}")
    return "\n".join(lines)


def summary(results: Sequence[Result]) -> str:
    """Over all apps: verdicts, the geometric mean of the joint speed-ups, predictions that held."""
    failed = [f"{result.app} failed: {result.error}" for result in results if result.error]
    results = [result for result in results if not result.error]
    verdicts = Counter(patch.verdict for result in results for patch in result.patches)
    speedups = [result.speedup for result in results if result.speedup is not None]
    met = [patch.within for result in results for patch in result.patches if patch.within is not None]
    true, false = sum(result.true for result in results), sum(result.false for result in results)
    lines = [
        "patches: " + (", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()) or "none"),
        f"findings: {true} true, {false} false, {sum(result.missed for result in results)} missed",
    ]
    if speedups:
        mean = math.exp(sum(map(math.log, speedups)) / len(speedups))
        lines.append(f"joint speed-up: {mean:.2f} in the geometric mean of {len(speedups)} apps with verified patches")
    if met:
        lines.append(f"measured and predicted intervals meet for {sum(met)} of {len(met)} patches")
    return "\n".join([*lines, *failed])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*", help="names below corpus/apps (default: all)")
    parser.add_argument("--size", choices=_SIZES, default="cpu")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of proving an app (default %(default)s)")
    parser.add_argument("--requests", type=int, help="of one launch (default: a minute or two of work)")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    parser.add_argument("--experts", metavar="NAME", help="savings of expert versions: results/NAME.json of experts.py")
    options = parser.parse_args()
    experts = {}
    if options.experts:
        kept = json.loads((RESULTS / f"{options.experts}.json").read_text(encoding="utf-8"))["apps"]
        experts = {app: float(figures["saving_pct"]) for app, figures in kept.items()}
    known = sorted(path.parent.name for path in apps.APPS.glob("*/faults.json"))
    if unknown := set(options.apps) - set(known):
        parser.error(f"no such app: {', '.join(sorted(unknown))} (there are {', '.join(known)})")
    results = []
    for name in options.apps or known:
        results.append(run(apps.APPS / name, options.size, options.budget, options.requests))
        print(patches(results[-1]), flush=True)
        print(flush=True)
    text = "\n\n".join((overview(results, experts), summary(results)))
    print(text)
    if options.save:
        figures = {
            result.app: {**vars(result), "patches": [vars(patch) for patch in result.patches]} for result in results
        }
        save(options.save, {"apps": figures}, "\n\n".join((*map(patches, results), text)))
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
