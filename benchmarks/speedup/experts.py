"""What an expert's rewrite of each app of ``corpus/apps`` gains: the mark that the tool's own patches are held against.

    python benchmarks/speedup/experts.py --size gpu --pairs 6 --save experts-h200
    python benchmarks/speedup/experts.py detect rerank --requests 4 --pairs 3

``corpus/experts/APP`` holds the modules of an app that were rewritten by hand, knowing its faults, its device and
PyTorch; what is not there is the app's own. Both versions run the same work in processes of their own, neighbouring
runs in random order, the first pair not counted. Times are those that the programs print (start and loading left out;
on a device recording of graphs included). Printed: the median of the paired ratios with a 95 % bootstrap interval, what
is saved, and whether both print the same answers.
"""

from __future__ import annotations

import argparse
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from measure import save, table

ROOT = Path(__file__).resolve().parents[2]
APPS, EXPERTS = ROOT / "corpus" / "apps", ROOT / "corpus" / "experts"

#: What an app says of its own time on standard error: seconds for the whole load, or milliseconds a step or a batch.
_TIME = re.compile(r"(?:steps of|median) (?P<ms>[\d.]+) ms(?! a job)|in (?P<s>[\d.]+) s\b")
#: Requests of a run, CPU and GPU.
_REQUESTS = {
    "adapters": (12, 48),
    "chat": (4, 32),
    "detect": (4, 40),
    "experts": (4, 12),
    "images": (2, 6),
    "rerank": (4, 30),
    "speculate": (4, 16),
    "summaries": (8, 32),
    "transcribe": (8, 60),
    "vision": (6, 40),
}
_SIZES = ("cpu", "gpu")


@dataclass
class Result:
    """Pairs of times of one app, original and expert's, in its own unit, and how their outputs compare."""

    app: str
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    differ: set[str] = field(default_factory=set)  # lines of the original that the expert version does not print
    error: str = ""

    @property
    def ratios(self) -> list[float]:
        return [before / after for before, after in zip(self.before, self.after, strict=True)]

    @property
    def equality(self) -> str:
        if not self.differ:
            return "equal"
        if all(line.startswith("checksum ") for line in self.differ):
            return "all lines but the checksum"
        return f"{len(self.differ)} lines differ"


def interval(ratios: list[float], seed: int = 0) -> tuple[float, float, float]:
    """Median and its 95 % bootstrap interval."""
    source = random.Random(seed)
    medians = sorted(statistics.median(source.choices(ratios, k=len(ratios))) for _ in range(2000))
    return statistics.median(ratios), medians[50], medians[1949]


def seconds(text: str) -> float:
    """The program's own figure, in seconds or milliseconds, alike for both versions. Raises ValueError without one."""
    match = _TIME.search(text)
    if match is None:
        raise ValueError(f"no time in {text.strip()[-200:]!r}")
    return float(match["ms"] or match["s"])


def measure(app: str, size: str, pairs: int, requests: int | None, source: random.Random) -> Result:
    """Run both versions in turns."""
    result = Result(app)
    work = str(requests or _REQUESTS[app][_SIZES.index(size)])
    with tempfile.TemporaryDirectory(prefix="experts-") as name:
        folders = {"app": Path(name) / "app", "expert": Path(name) / "expert"}
        for folder in folders.values():
            shutil.copytree(APPS / app, folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(EXPERTS / app, folders["expert"], dirs_exist_ok=True)
        shutil.copy(EXPERTS / "captured.py", folders["expert"])
        for number in range(pairs + 1):
            times, outputs = {}, {}
            for version in source.sample(sorted(folders), 2):
                command = [sys.executable, "main.py", "--size", size, "--requests", work]
                done = subprocess.run(command, cwd=folders[version], capture_output=True, text=True)
                if done.returncode:
                    result.error = f"{version}: {done.stderr.strip()[-300:]}"
                    return result
                times[version], outputs[version] = seconds(done.stderr), done.stdout.splitlines()
            result.differ |= set(outputs["app"]) - set(outputs["expert"])
            if number:
                result.before.append(times["app"])
                result.after.append(times["expert"])
    return result


def report(results: list[Result]) -> str:
    """A row an app, and the geometric mean."""
    rows = [["app", "pairs", "before", "after", "ratio", "saved %", "outputs"]]
    for result in results:
        if result.error:
            rows.append([result.app, "failed", *[""] * 5])
            continue
        middle, low, high = interval(result.ratios)
        rows.append([
            result.app, str(len(result.ratios)), f"{statistics.median(result.before):.4g}",
            f"{statistics.median(result.after):.4g}", f"x{middle:.2f} [{low:.2f}, {high:.2f}]",
            f"{100 * (1 - 1 / middle):.1f}", result.equality,
        ])  # fmt: skip
    lines = [table(rows)]
    ran = [interval(result.ratios)[0] for result in results if not result.error]
    if ran:
        lines.append(f"geometric mean of {len(ran)} apps: x{statistics.geometric_mean(ran):.2f}")
    lines += [f"{result.app} failed: {result.error}" for result in results if result.error]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*", help="names below corpus/experts (default: all)")
    parser.add_argument("--size", choices=_SIZES, default="cpu")
    parser.add_argument("--pairs", type=int, default=5, help="counted pairs of runs (default %(default)s)")
    parser.add_argument("--requests", type=int, help="of one run (default: by app)")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    options = parser.parse_args()
    if unknown := set(options.apps) - set(_REQUESTS):
        parser.error(f"no such app: {', '.join(sorted(unknown))} (there are {', '.join(_REQUESTS)})")
    source = random.Random(0)
    results = []
    for name in options.apps or sorted(_REQUESTS):
        results.append(measure(name, options.size, options.pairs, options.requests, source))
        print(f"{name}: {results[-1].error or results[-1].equality}", file=sys.stderr, flush=True)
    text = report(results)
    print(text)
    if options.save:
        figures = {
            result.app: {"saving_pct": 100 * (1 - 1 / interval(result.ratios)[0]), "before": result.before,
                         "after": result.after, "outputs": result.equality}
            for result in results if not result.error
        }  # fmt: skip
        save(options.save, {"apps": figures}, text)
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
