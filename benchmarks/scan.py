"""What a scan costs: seconds, memory and findings on a package or a folder, against ``ast.parse`` of the same files.

    python benchmarks/scan.py transformers
    python benchmarks/scan.py src/mypackage --repeat 5 --linear
    python benchmarks/scan.py transformers --peers --peer torchfix=venv/bin/torchfix --peer hotpath=venv/bin/hotpath

The target is a folder, or the name of an installed package (it is found, never imported). Its Python files are copied,
since one of the measured cases changes a file. Cases, taken in turn in each round: ``ast.parse`` alone, no cache, empty
cache, full cache, full cache with one file changed; ``--without`` leaves one of the scans out. ``--linear`` scans the
tree once, twice and four times over; ``--peers`` gives a sample of files (fixed seed) to other tools too. Each has to
find something in files with planted faults first, so that 0 findings are no output that was misread.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import random
import re
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measure import Run, run, save, spread, table

PARSE = """
import ast, sys, time
files = open(sys.argv[1]).read().split("\\0")
texts = []
for name in files:
    with open(name, "rb") as stream:
        texts.append(stream.read())
started = time.process_time()
failed = 0
for text in texts:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        failed += 1
print(time.process_time() - started, failed)
"""

PLANTED = """
import pickle

import numpy as np
import torch
from functorch import vmap
from torch import nn


class Net(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        total = torch.tensor(np.zeros(4))
        for row in x:
            if row.item() > 0:
                total = total + np.asarray(row.cpu())
        return total


def load(path: str) -> object:
    torch.solve(torch.ones(2, 2), torch.ones(2, 2))
    with open(path, "rb") as stream:
        return pickle.load(stream), torch.load(path), vmap(load)
"""

# what each tool is told, the folder of the sample coming after it (one process each), and what a finding looks like
PEERS = {
    "torchfix": (["--select=ALL", "-j1"], re.compile(r":\d+:\d+: TOR\d+")),
    "hotpath": (["analyze"], re.compile(r" KP\d+ line ")),
    "semgrep": (["scan", "--metrics=off", "--disable-version-check", "--jobs=1", "--emacs"], re.compile(r":\d+:\d+:")),
}


def locate(target: str) -> Path:
    """The folder (or single file) of a path or of an installed package. Raises SystemExit with a line for the user."""
    path = Path(target)
    if path.exists():
        return path.resolve()
    try:
        spec = importlib.util.find_spec(target)
    except (ImportError, ValueError):
        spec = None
    if spec is None or (spec.origin is None and not spec.submodule_search_locations):
        raise SystemExit(f"scan.py: {target}: neither a path nor an installed package")
    if spec.submodule_search_locations:
        return Path(next(iter(spec.submodule_search_locations)))
    return Path(str(spec.origin))


def copy_python(source: Path, target: Path) -> list[Path]:
    """Copy the Python files of a tree; returns the copies in order."""
    if source.is_file():
        target.mkdir(parents=True)
        return [Path(shutil.copy(source, target))]
    copies = []
    for file in sorted(source.rglob("*.py")):
        if file.is_file():
            copy = target / file.relative_to(source)
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(file, copy)
            copies.append(copy)
    if not copies:
        raise SystemExit(f"scan.py: {source}: no Python file")
    return copies


def count_lines(files: Sequence[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def scan(tree: Path, cache: Path, jobs: int | None, *options: str) -> tuple[Run, dict[str, Any]]:
    """One run of the linter on a tree: what it took, and its report's summary. Raises SystemExit if it failed."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [
            sys.executable,
            "-m",
            "awp_lint",
            str(tree),
            "--isolated",
            "--format",
            "json",
            "--output",
            str(report),
        ]
        command += ["--jobs", str(jobs)] if jobs else []
        done = run([*command, *options], env={"XDG_CACHE_HOME": str(cache)})
        if done.code not in (0, 1):
            raise SystemExit(f"scan.py: awp-lint ended with {done.code}: {done.error.strip()[-2000:]}")
        data = json.loads(report.read_text())
    by_rule: dict[str, int] = {}
    for finding in data["findings"]:
        by_rule[finding["rule"]] = by_rule.get(finding["rule"], 0) + 1
    return done, {
        "findings": len(data["findings"]),
        "by_rule": dict(sorted(by_rule.items())),
        "errors": len(data["errors"]),
        "files": data["summary"]["files"],
        "lines": data["summary"]["lines"],
    }


CASES = ("no cache", "cold", "warm", "one changed")


def parse_only(files: Sequence[Path], scratch: Path) -> tuple[Run, float]:
    """``ast.parse`` of all files in one process: the whole child, and the CPU seconds of parsing alone."""
    names = scratch / "names"
    names.write_text("\0".join(map(str, files)))
    done = run([sys.executable, "-c", PARSE, str(names)])
    return done, float(done.output.split()[0])


def touch(files: Sequence[Path], number: int) -> None:
    """Change one file: the one of median size among those that name torch, else among all."""
    relevant = [file for file in files if b"torch" in file.read_bytes()] or list(files)
    chosen = sorted(relevant, key=lambda file: (file.stat().st_size, str(file)))[len(relevant) // 2]
    with chosen.open("a") as stream:
        stream.write(f"\n\ndef touched_{number}(value):\n    return value + {number}\n")


def measure_cases(
    tree: Path, files: Sequence[Path], scratch: Path, repeat: int, jobs: int | None, without: Sequence[str]
) -> dict[str, Any]:
    runs: dict[str, list[Run]] = {"ast.parse": [], **{case: [] for case in CASES if case not in without}}
    parse_cpu: list[float] = []
    summaries: dict[str, dict[str, Any]] = {}
    empty = scratch / "unused-cache"
    for number in range(repeat):
        done, seconds = parse_only(files, scratch)
        runs["ast.parse"].append(done)
        parse_cpu.append(seconds)
        cache = scratch / f"cache{number}"
        for case, where, options in (
            ("no cache", empty, ("--no-cache",)),
            ("cold", cache, ()),
            ("warm", cache, ()),
            ("one changed", cache, ()),
        ):
            if case in without:
                continue
            if case == "one changed":
                touch(files, number)
            done, summaries[case] = scan(tree, where, jobs, *options)
            runs[case].append(done)
            print(f"  round {number + 1} {case}: {done.wall:.2f} s wall, {done.cpu:.2f} s CPU", file=sys.stderr)
        shutil.rmtree(cache, ignore_errors=True)
    return {"runs": runs, "parse_cpu": parse_cpu, "summaries": summaries}


def cases_table(measured: dict[str, Any], lines: int) -> tuple[str, dict[str, Any]]:
    parse_cpu = spread(measured["parse_cpu"])["median"]
    rows = [
        ["case", "wall s", "(min-max)", "CPU s", "(min-max)", "ms/1k lines", "x ast.parse", "MiB process", "MiB tree"]
    ]
    figures: dict[str, Any] = {}
    for case, runs in measured["runs"].items():
        wall = spread(r.wall for r in runs)
        cpu = spread(measured["parse_cpu"] if case == "ast.parse" else (r.cpu for r in runs))
        largest = max(r.largest_mib for r in runs)
        tree = max((r.tree_mib or 0.0) for r in runs)
        figures[case] = {
            "wall": wall,
            "cpu": cpu,
            "ratio": cpu["median"] / parse_cpu,
            "largest_mib": largest,
            "tree_mib": tree,
        }
        rows.append([
            case, f"{wall['median']:.2f}", f"({wall['min']:.2f}-{wall['max']:.2f})",
            f"{cpu['median']:.2f}", f"({cpu['min']:.2f}-{cpu['max']:.2f})",
            f"{cpu['median'] * 1e6 / lines:.1f}", f"{cpu['median'] / parse_cpu:.2f}", f"{largest:.0f}", f"{tree:.0f}",
        ])  # fmt: skip
    return table(rows), figures


def measure_linear(source: Path, scratch: Path, repeat: int, jobs: int | None) -> tuple[str, list[dict[str, Any]]]:
    """The tree once, twice and four times over, side by side under different names, without a cache."""
    sizes = (1, 2, 4)
    trees = {}
    for size in sizes:
        for part in range(size):
            copy_python(source, scratch / f"linear{size}" / f"part{part}")
        trees[size] = scratch / f"linear{size}"
    runs: dict[int, list[Run]] = {size: [] for size in sizes}
    summaries: dict[int, dict[str, Any]] = {}
    for _ in range(repeat):
        for size in sizes:
            done, summaries[size] = scan(trees[size], scratch / "unused-cache", jobs, "--no-cache")
            runs[size].append(done)
    rows = [["tree", "lines", "findings", "wall s", "CPU s", "CPU ms/1k lines", "MiB process"]]
    figures = []
    for size in sizes:
        lines = summaries[size]["lines"]
        cpu, wall = spread(r.cpu for r in runs[size]), spread(r.wall for r in runs[size])
        largest = max(r.largest_mib for r in runs[size])
        figures.append({"size": size, **summaries[size], "cpu": cpu, "wall": wall, "largest_mib": largest})
        rows.append([
            f"{size}x", str(lines), str(summaries[size]["findings"]), f"{wall['median']:.2f}", f"{cpu['median']:.2f}",
            f"{cpu['median'] * 1e6 / max(lines, 1):.1f}", f"{largest:.0f}",
        ])  # fmt: skip
    return table(rows), figures


def measure_peers(
    files: Sequence[Path],
    tree: Path,
    scratch: Path,
    repeat: int,
    size: int,
    peers: dict[str, str],
    extra: dict[str, list[str]],
) -> tuple[str, dict[str, Any]]:
    """Other tools and ours on the same sample of files, one process each, in turn."""
    chosen = sorted(random.Random(0).sample(list(files), min(size, len(files))))
    sample = scratch / "sample"
    copies = []
    for file in chosen:
        copy = sample / file.relative_to(tree)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, copy)
        copies.append(copy)
    lines = count_lines(copies)
    commands = {name: [program, *PEERS[name][0], *extra.get(name, ()), str(sample)] for name, program in peers.items()}
    planted = {name: _planted(name, command[:-1], scratch) for name, command in commands.items()}
    runs: dict[str, list[Run]] = {name: [] for name in ["ast.parse", "awp-lint", *commands]}
    parse_cpu: list[float] = []
    found: dict[str, int] = {}
    for _ in range(repeat):
        done, seconds = parse_only(copies, scratch)
        runs["ast.parse"].append(done)
        parse_cpu.append(seconds)
        done, summary = scan(sample, scratch / "unused-cache", 1, "--no-cache")
        runs["awp-lint"].append(done)
        found["awp-lint"] = summary["findings"]
        for name, command in commands.items():
            done = run(command, cwd=scratch)
            runs[name].append(done)
            if done.code not in (0, 1):
                raise SystemExit(f"scan.py: {name} ended with {done.code}: {done.error.strip()[-1000:]}")
            found[name] = len(PEERS[name][1].findall(done.output))
    base = spread(parse_cpu)["median"]
    rows = [["tool", "wall s", "CPU s", "(min-max)", "CPU ms/1k lines", "x ast.parse", "MiB", "findings", "of planted"]]
    figures: dict[str, Any] = {}
    for name, taken in runs.items():
        cpu = spread(parse_cpu) if name == "ast.parse" else spread(r.cpu for r in taken)
        wall = spread(r.wall for r in taken)
        largest = max(r.largest_mib for r in taken)
        figures[name] = {"cpu": cpu, "wall": wall, "largest_mib": largest, "findings": found.get(name)}
        figures[name]["planted"] = planted.get(name)
        rows.append([
            name, f"{wall['median']:.2f}", f"{cpu['median']:.2f}", f"({cpu['min']:.2f}-{cpu['max']:.2f})",
            f"{cpu['median'] * 1e6 / lines:.0f}", f"{cpu['median'] / base:.1f}", f"{largest:.0f}",
            str(found.get(name, "")), str(planted.get(name, "")),
        ])  # fmt: skip
    heading = f"{len(copies)} files (seed 0), {lines} lines, one process each; {_about(peers, extra)}\n"
    return heading + table(rows), {"files": len(copies), "lines": lines, "tools": figures}


def _planted(name: str, command: Sequence[str], scratch: Path) -> int:
    """How many findings of a tool are read on two files that have some. Raises SystemExit for none."""
    folder = scratch / "planted"
    folder.mkdir(exist_ok=True)
    for file in ("one.py", "two.py"):
        (folder / file).write_text(PLANTED)
    done = run([*command, str(folder)], cwd=scratch)
    found = len(PEERS[name][1].findall(done.output))
    if not found:
        raise SystemExit(f"scan.py: {name} finds nothing in planted faults: {done.output[-1000:]}{done.error[-1000:]}")
    return found


def _about(peers: dict[str, str], extra: dict[str, list[str]]) -> str:
    """Versions of the tools, and which rules semgrep was given."""
    told = []
    for name, program in peers.items():
        words = run([program, "--version"]).output.split()
        told.append(f"{name} {words[0] if words else '(version unknown)'}")
    folders = [Path(option.partition("=")[2]) for option in extra.get("semgrep", ())]
    rules = [file for folder in folders for file in sorted(folder.glob("*.y*ml"))]
    if "semgrep" in peers:
        told.append(f"semgrep's rules: {len(rules)} ({', '.join(file.stem for file in rules)})")
    return ", ".join(told) or "no other tool was given"


def peer(text: str) -> tuple[str, str]:
    name, sign, program = text.partition("=")
    if not sign or name not in PEERS:
        raise argparse.ArgumentTypeError(f"{text!r}: NAME=PROGRAM with NAME one of {', '.join(PEERS)}")
    if not Path(program).is_file():
        raise argparse.ArgumentTypeError(f"{program}: no such program")
    return name, str(Path(program).absolute())


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", help="a folder, a file, or the name of an installed package")
    parser.add_argument("--repeat", type=int, default=3, help="rounds (default: 3)")
    parser.add_argument("--jobs", type=int, help="worker processes of the linter (default: its own choice)")
    parser.add_argument("--without", action="append", default=[], choices=CASES[:1], help="a case that is not measured")
    parser.add_argument("--linear", action="store_true", help="also the tree 1x, 2x and 4x")
    parser.add_argument("--peers", action="store_true", help="also other tools on a sample of files")
    parser.add_argument(
        "--peer", type=peer, action="append", default=[], metavar="NAME=PROGRAM", help="a tool to compare"
    )
    parser.add_argument("--semgrep-rules", metavar="FOLDER", help="rules for --peer semgrep=…")
    parser.add_argument("--sample", type=int, default=120, help="files of the sample for --peers (default: 120)")
    parser.add_argument("--name", help="name of the result files (default: scan-TARGET)")
    parser.add_argument("--out", type=Path, help="folder of the result files (default: benchmarks/results)")
    args = parser.parse_args()
    if args.repeat < 1:
        parser.error("--repeat must be at least 1")
    source = locate(args.target)
    with tempfile.TemporaryDirectory(prefix="awp-scan-") as folder:
        scratch = Path(folder)
        tree = scratch / "tree" / source.stem
        files = copy_python(source, tree)
        lines = count_lines(files)
        result: dict[str, Any] = {"target": source.name, "files": len(files), "lines": lines, "repeat": args.repeat}
        measured = measure_cases(tree, files, scratch, args.repeat, args.jobs, args.without)
        text, result["cases"] = cases_table(measured, lines)
        result["summaries"] = measured["summaries"]
        cold = next(iter(measured["summaries"].values()))
        parts = [
            f"{source.name}: {len(files)} files, {lines} lines, {args.repeat} rounds, cases taken in turn",
            text,
            f"findings: {cold['findings']} in {cold['files']} files, {cold['errors']} files with errors",
            "by rule: " + (", ".join(f"{rule} {number}" for rule, number in cold["by_rule"].items()) or "none"),
        ]
        if args.peers:
            extra = {"semgrep": [f"--config={args.semgrep_rules}"]} if args.semgrep_rules else {}
            text, result["peers"] = measure_peers(
                files, tree, scratch, args.repeat, args.sample, dict(args.peer), extra
            )
            parts.append(text)
        if args.linear:
            text, result["linear"] = measure_linear(source, scratch, args.repeat, args.jobs)
            parts.append(text)
    report = "\n\n".join(parts)
    print(report)
    name = args.name or f"scan-{source.name}"
    paths = save(name, result, report, args.out) if args.out else save(name, result, report)
    print(f"\nwritten: {', '.join(path.name for path in paths)}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
