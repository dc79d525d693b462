"""What an expert's rewrite of each app of ``corpus/apps`` gains, and how much of it the tool's own patches bring.

    python benchmarks/speedup/experts.py --size gpu --pairs 6 --save experts-h200
    python benchmarks/speedup/experts.py detect rerank --requests 4 --pairs 3

``corpus/experts/APP`` holds the modules of an app that were rewritten by hand, knowing its faults, its device and
PyTorch; what is not there is the app's own. The tool's version is the app after ``awp-lint . --fix --unsafe-fixes``:
every patch, none chosen, nothing edited by hand. All versions run the same work in processes of their own, neighbouring
runs in random order, the first round not counted. Times are those that the programs print (start and loading left out;
on a device recording of graphs included). Printed: the medians of the paired ratios with 95 % bootstrap intervals,
whether both print the same answers as the app, and the share of the expert's gain in time that the tool's version has.
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


VERSIONS = ("app", "expert", "tool")


@dataclass
class Result:
    """Times of one app by version, in its own unit, and how the outputs compare with the app's."""

    app: str
    times: dict[str, list[float]] = field(default_factory=lambda: {version: [] for version in VERSIONS})
    differ: dict[str, set[str]] = field(default_factory=lambda: {version: set() for version in VERSIONS})
    patches: str = ""
    error: str = ""

    def ratios(self, version: str) -> list[float]:
        """Of each round: the app's time to the version's."""
        return [before / after for before, after in zip(self.times["app"], self.times[version], strict=True)]

    def equality(self, version: str) -> str:
        differ = self.differ[version]  # lines that the app prints and the version does not
        if not differ:
            return "equal"
        if all(line.startswith("checksum ") for line in differ):
            return "all lines but the checksum"
        return f"{len(differ)} lines differ"

    def share(self) -> float | None:
        """Of the expert's gain in time, by the medians; None where the expert gains nothing."""
        tool, expert = (1 - 1 / statistics.median(self.ratios(version)) for version in ("tool", "expert"))
        return tool / expert if expert > 0 else None


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
    """Run all versions in turns."""
    result = Result(app)
    work = str(requests or _REQUESTS[app][_SIZES.index(size)])
    with tempfile.TemporaryDirectory(prefix="experts-") as name:
        folders = {version: Path(name) / version for version in VERSIONS}
        for folder in folders.values():
            shutil.copytree(APPS / app, folder, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(EXPERTS / app, folders["expert"], dirs_exist_ok=True)
        shutil.copy(EXPERTS / "captured.py", folders["expert"])
        result.patches = patched(folders["tool"])
        first: list[str] | None = None
        for number in range(pairs + 1):
            times, outputs = {}, {}
            for version in source.sample(VERSIONS, len(VERSIONS)):
                command = [sys.executable, "main.py", "--size", size, "--requests", work]
                done = subprocess.run(command, cwd=folders[version], capture_output=True, text=True)
                if done.returncode:
                    result.error = f"{version}: {done.stderr.strip()[-300:]}"
                    return result
                times[version], outputs[version] = seconds(done.stderr), done.stdout.splitlines()
            first = outputs["app"] if first is None else first
            for version in VERSIONS:  # the app against itself, too: on some devices no two runs print the same
                result.differ[version] |= set(first) - set(outputs[version])
                if number:
                    result.times[version].append(times[version])
    return result


def patched(folder: Path) -> str:
    """Write all of the tool's patches into a copy; what it says of them."""
    command = [sys.executable, "-m", "awp_lint", ".", "--fix", "--unsafe-fixes", "--no-cache", "--isolated"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    said = [line for line in done.stderr.splitlines() if " fixed, " in line]
    return said[0] if said else done.stderr.strip()[-200:] or "nothing to fix"


def report(results: list[Result]) -> str:
    """A row an app, and the geometric means."""
    rows = [
        [
            "app",
            "rounds",
            "app's",
            "outputs",
            "expert's",
            "outputs",
            "the tool's",
            "outputs",
            "share of the gain",
            "patches",
        ]
    ]
    ran = [result for result in results if not result.error]
    for result in ran:
        share = result.share()
        rows.append([
            result.app, str(len(result.times["app"])), f"{statistics.median(result.times['app']):.4g}",
            result.equality("app"),
            *(cell for version in ("expert", "tool")
              for cell in ("x{:.2f} [{:.2f}, {:.2f}]".format(*interval(result.ratios(version))),
                           result.equality(version))),
            "" if share is None else f"{share:.0%}", result.patches,
        ])  # fmt: skip
    lines = [table(rows)]
    if ran:
        means = {
            version: statistics.geometric_mean(statistics.median(result.ratios(version)) for result in ran)
            for version in ("expert", "tool")
        }
        shares = [max(share, 0.01) for result in ran if (share := result.share()) is not None]
        told = f"geometric means of {len(ran)} apps: expert's x{means['expert']:.2f}, the tool's x{means['tool']:.2f}"
        part = f"; share of the gain {statistics.geometric_mean(shares):.0%} (none counts as 1 %)" if shares else ""
        lines.append(told + part)
    lines += [f"{result.app} failed: {result.error}" for result in results if result.error]
    return "\n".join(lines)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*", help="names below corpus/experts (default: all)")
    parser.add_argument("--size", choices=_SIZES, default="cpu")
    parser.add_argument("--pairs", type=int, default=5, help="counted rounds (default %(default)s)")
    parser.add_argument("--requests", type=int, help="of one run (default: by app)")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    options = parser.parse_args()
    if unknown := set(options.apps) - set(_REQUESTS):
        parser.error(f"no such app: {', '.join(sorted(unknown))} (there are {', '.join(_REQUESTS)})")
    source = random.Random(0)
    results = []
    for name in options.apps or sorted(_REQUESTS):
        results.append(measure(name, options.size, options.pairs, options.requests, source))
        print(report(results[-1:]), file=sys.stderr, flush=True)
    text = report(results)
    print(text)
    if options.save:
        figures = {
            result.app: {
                "saving_pct": 100 * (1 - 1 / statistics.median(result.ratios("expert"))),
                "tool_saving_pct": 100 * (1 - 1 / statistics.median(result.ratios("tool"))),
                "times": result.times,
                "outputs": {version: result.equality(version) for version in ("expert", "tool")},
                "patches": result.patches,
            }
            for result in results
            if not result.error
        }
        save(options.save, {"apps": figures}, text)
    return 1 if any(result.error for result in results) else 0


if __name__ == "__main__":
    sys.exit(main())
