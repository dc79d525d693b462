"""What the tool finds, proves and gains in installed packages, as programs that only call them bring it up.

    python benchmarks/speedup/packages.py --size gpu --budget 60 --save packages-h200
    python benchmarks/speedup/packages.py generate beams --requests 40 --budget 20

``corpus/packages`` holds short programs: text generation, beam search and routed experts of transformers, sentence
embeddings, classification with timm, detection with torchvision, all with random weights. Nothing of theirs is scanned
ahead: ``awp-lint PROGRAM --include-deps --verify --profile`` finds which modules run hot, marks and prices what it
finds in them, and proves its patches in an overlay; no installed file is changed. Printed for each program: what a unit
takes and how much of it the device idles, findings in packages by verdict, patches that were tried with what was
predicted and measured, and all verified ones together.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import save, table
from run import Patch, failure, patch_of, range_of

PROGRAMS = Path(__file__).resolve().parents[2] / "corpus" / "packages"
#: Requests of one launch, CPU and GPU: a minute or so of work.
_REQUESTS = {
    "generate": (400, 120),
    "beams": (300, 100),
    "routed": (1500, 1000),
    "embed": (1000, 200),
    "classify": (100, 400),
    "boxes": (20, 200),
}
_SIZES = ("cpu", "gpu")


@dataclass(frozen=True)
class Result:
    """What one run says of one program. ``places`` are findings in packages: rule, place, verdict, reason."""

    program: str
    seconds: float
    error: str = ""
    unit: str = ""
    unit_ms: float | None = None
    gap_ratio: float | None = None
    reasons: tuple[str, ...] = ()
    places: tuple[tuple[str, str, str, str], ...] = ()
    patches: tuple[Patch, ...] = ()
    joint: dict[str, Any] | None = None


def run(program: str, size: str, budget: float, requests: int | None) -> Result:
    """One program, profiled and proven in a folder of its own."""
    with tempfile.TemporaryDirectory(prefix="packages-") as name:
        folder = Path(name).resolve()
        for file in ("common.py", f"{program}.py"):
            shutil.copy(PROGRAMS / file, folder)
        report = folder / "report.json"
        work = str(requests or _REQUESTS[program][_SIZES.index(size)])
        command = [
            *(sys.executable, "-m", "awp_lint", f"{program}.py", "--isolated", "--no-cache", "--no-ledger"),
            *("--exit-zero", "--include-deps", "--format", "json", "--output", str(report)),
            *("--verify", "--budget", f"{budget:g}"),
            *("--profile", sys.executable, f"{program}.py", "--size", size, "--requests", work),
        ]
        began = time.monotonic()
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, stdin=subprocess.DEVNULL)
        seconds = time.monotonic() - began
        said = done.stderr.strip()
        if done.returncode != 0 or not report.exists():
            return Result(program, seconds, error=said[-300:] or f"exit code {done.returncode}")
        result = read(program, json.loads(report.read_text(encoding="utf-8")), seconds)
        return replace(result, error=f"{result.error}: {said[-300:]}") if result.error else result


def read(program: str, report: dict[str, Any], seconds: float) -> Result:
    """The figures of a JSON report."""
    profile = report["profile"] or {}
    found = [finding for finding in report["findings"] if finding["origin"] == "dependency"]
    return Result(
        program=program,
        seconds=seconds,
        error=failure(profile),
        unit=profile.get("unit") or "",
        unit_ms=profile.get("unit_ms"),
        gap_ratio=profile.get("gap_ratio"),
        reasons=tuple(profile.get("reasons") or ()),
        places=tuple(_place(finding) for finding in found),
        patches=tuple(patch_of(finding) for finding in report["findings"] if finding.get("verification")),
        joint=(profile.get("verification") or {}).get("joint"),
    )


def _place(finding: dict[str, Any]) -> tuple[str, str, str, str]:
    parts = Path(finding["path"]).parts
    start = parts.index("site-packages") + 1 if "site-packages" in parts else max(len(parts) - 3, 0)
    evidence = finding["evidence"] or {"verdict": "static_only", "reason": ""}
    return (
        finding["rule"],
        f"{'/'.join(parts[start:])}:{finding['line']}",
        evidence["verdict"].replace("_", " "),
        evidence["reason"],
    )


def shown(result: Result) -> str:
    """A program's findings and patches."""
    if result.error:
        return f"{result.program} failed: {result.error}"
    lines = [f"{result.program}: {len(result.places)} findings in packages"]
    lines += [f"  {rule} {place}: {verdict}; {reason}" for rule, place, verdict, reason in result.places]
    rows = [["patch", "place", "predicted %", "measured %", "pairs", "verdict", "results"]]
    rows += [
        [
            patch.rule, patch.place, range_of(patch.predicted, patch.predicted_low, patch.predicted_high),
            range_of(patch.measured, patch.low, patch.high), str(patch.pairs), patch.verdict, patch.equality,
        ]
        for patch in result.patches
    ]  # fmt: skip
    return "\n".join([*lines, *([table(rows)] if result.patches else ["  no patch was tried"])])


def overview(results: list[Result]) -> str:
    """A row a program."""
    rows = [["program", "unit", "ms", "gap ratio", "findings", "verdicts", "tried", "verified", "joint %", "s"]]
    for result in results:
        if result.error:
            rows.append([result.program, "failed", *[""] * 7, f"{result.seconds:.0f}"])
            continue
        verdicts = Counter(verdict for _, _, verdict, _ in result.places)
        joint = result.joint or {}
        rows.append([
            result.program, result.unit, "" if result.unit_ms is None else f"{result.unit_ms:.2f}",
            "" if result.gap_ratio is None else f"{result.gap_ratio:.2f}", str(len(result.places)),
            ", ".join(f"{count} {verdict}" for verdict, count in verdicts.most_common()), str(len(result.patches)),
            str(sum(patch.verdict == "verified" for patch in result.patches)),
            range_of(joint.get("saving_pct"), joint.get("low_pct"), joint.get("high_pct")), f"{result.seconds:.0f}",
        ])  # fmt: skip
    failed = [f"{result.program} failed: {result.error}" for result in results if result.error]
    told = [f"{result.program}: {reason}" for result in results for reason in result.reasons]
    return "\n".join([table(rows), *told, *failed])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="names below corpus/packages (default: all)")
    parser.add_argument("--size", choices=_SIZES, default="cpu")
    parser.add_argument("--budget", type=float, default=60.0, help="seconds of proving a program (default %(default)s)")
    parser.add_argument("--requests", type=int, help="of one launch (default: a minute or so of work)")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    options = parser.parse_args()
    if unknown := set(options.programs) - set(_REQUESTS):
        parser.error(f"no such program: {', '.join(sorted(unknown))} (there are {', '.join(_REQUESTS)})")
    results = []
    for program in options.programs or _REQUESTS:
        results.append(run(program, options.size, options.budget, options.requests))
        print(shown(results[-1]), end="\n\n", flush=True)
    text = overview(results)
    print(text)
    if options.save:
        figures = {
            result.program: {**vars(result), "patches": [vars(patch) for patch in result.patches]} for result in results
        }
        save(options.save, {"programs": figures}, "\n\n".join((*map(shown, results), text)))
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
