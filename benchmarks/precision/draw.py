"""Draw findings at random for readers to judge, and count their verdicts.

    python benchmarks/precision/draw.py draw src/transformers src/diffusers … --each 60 --out drawn/
    python benchmarks/precision/draw.py count drawn/ --reader a --reader b [--settled drawn/settled.csv]

``draw`` scans each folder at the default level, draws with a fixed seed, stratified by rule (each rule's share of the
draw is its share of the findings, one at least where there is room), and writes ``<package>.txt`` with the source
around each finding and what the tool says of it, and ``drawn.csv`` (number, package, rule, path, line).
A reader writes ``<package>-<reader>.csv``: number, verdict (true or false), reason. What *true* means: ``reading.md``.
``count`` prints precision by package and rule with its 95 % Wilson interval, and where the readers differ.
"""

from __future__ import annotations

import argparse
import csv
import json
import math
import random
import subprocess
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path
from typing import Any

SEED = 20261129
AROUND = 22  # lines of source on each side


def scan(folder: Path) -> list[dict[str, Any]]:
    """The findings of a folder at the default level, copies of one piece of code once."""
    with tempfile.TemporaryDirectory() as place:
        out = Path(place) / "report.json"
        command = [
            sys.executable,
            "-m",
            "awp_lint",
            str(folder),
            "--isolated",
            "--format",
            "json",
            "--output",
            str(out),
        ]
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        found: list[dict[str, Any]] = json.loads(out.read_text(encoding="utf-8"))["findings"]
    first: dict[str, dict[str, Any]] = {}
    for finding in found:
        first.setdefault(finding.get("group") or finding["id"], finding)
    return list(first.values())


def draw(found: list[dict[str, Any]], number: int, generator: random.Random) -> list[dict[str, Any]]:
    """So many findings, by rule in proportion."""
    by_rule: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for finding in found:
        by_rule[finding["rule"]].append(finding)
    number = min(number, len(found))
    quota = {rule: number * len(rows) / len(found) for rule, rows in by_rule.items()}
    taken = {rule: min(len(by_rule[rule]), max(1, math.floor(share))) for rule, share in quota.items()}
    while sum(taken.values()) > number:
        rule = max(taken, key=lambda rule: (taken[rule] - quota[rule], rule))
        taken[rule] -= 1
    while sum(taken.values()) < number:
        open_ = [rule for rule in taken if taken[rule] < len(by_rule[rule])]
        rule = max(open_, key=lambda rule: (quota[rule] - taken[rule], rule))
        taken[rule] += 1
    return [row for rule in sorted(taken) for row in generator.sample(by_rule[rule], taken[rule])]


def inside(finding: dict[str, Any], folder: Path) -> str:
    """The finding's path within the folder."""
    path = Path(finding["path"])
    return str((path if path.exists() else folder / path).resolve().relative_to(folder.resolve()))


def excerpt(path: Path, finding: dict[str, Any]) -> str:
    """The lines around a finding; the finding's own are marked."""
    lines = path.read_text(encoding="utf-8", errors="replace").splitlines()
    begin, end = max(1, finding["line"] - AROUND), min(len(lines), finding["end_line"] + AROUND)
    inside = range(finding["line"], finding["end_line"] + 1)
    return "\n".join(f"{'>' if n in inside else ' '}{n:5} {lines[n - 1]}" for n in range(begin, end + 1))


def wilson(good: int, total: int) -> tuple[float, float]:
    """95 % interval of a share."""
    if not total:
        return 0.0, 1.0
    z, share = 1.96, good / total
    middle = (share + z * z / (2 * total)) / (1 + z * z / total)
    half = z * math.sqrt(share * (1 - share) / total + z * z / (4 * total * total)) / (1 + z * z / total)
    return middle - half, middle + half


def known(readings: Sequence[Path]) -> set[tuple[str, str, str, int]]:
    """Package, rule, path and line of findings that were judged before."""
    found = set()
    for path in readings:
        with path.open(encoding="utf-8", newline="") as stream:
            found.update((row["package"], row["rule"], row["path"], int(row["line"])) for row in csv.DictReader(stream))
    return found


def draw_all(folders: list[Path], each: int, out: Path, seed: int = SEED, before: Sequence[Path] = ()) -> None:
    out.mkdir(parents=True, exist_ok=True)
    judged = known(before)
    rows: list[dict[str, Any]] = []
    for folder in folders:
        generator = random.Random(f"{seed} {folder.name}")
        found = scan(folder)
        total = len(found)
        found = [f for f in found if (folder.name, f["rule"], inside(f, folder), f["line"]) not in judged]
        chosen = draw(found, each, generator)
        generator.shuffle(chosen)
        pieces = []
        for finding in chosen:
            path = Path(finding["path"])
            path = path if path.exists() else folder / path
            rows.append(
                {
                    "number": len(rows) + 1,
                    "package": folder.name,
                    "rule": finding["rule"],
                    "path": inside(finding, folder),
                    "line": finding["line"],
                }
            )
            pieces.append(
                f"=== {len(rows)}  {finding['rule']} {finding['name']}  {path}:{finding['line']}"
                f"  in {finding.get('function')}  ({finding['confidence']})\n{finding['message']}\n"
                f"{finding.get('action') or finding.get('recommendation') or ''}\n"
                f"why: {json.dumps(finding.get('why') or finding.get('reasons') or finding.get('frequency'))}\n\n"
                f"{excerpt(path, finding)}\n"
            )
        (out / f"{folder.name}.txt").write_text("\n".join(pieces), encoding="utf-8")
        print(f"{folder.name}: {len(chosen)} of {total} findings drawn, {total - len(found)} of them judged before")
    with (out / "drawn.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.DictWriter(stream, ["number", "package", "rule", "path", "line"])
        writer.writeheader()
        writer.writerows(rows)


def verdicts(out: Path, reader: str) -> dict[int, tuple[bool, str]]:
    """One reader's verdicts by number. Raises ValueError for a verdict that is neither true nor false."""
    found = {}
    for path in sorted(out.glob(f"*-{reader}.csv")):
        for row in csv.reader(path.open(encoding="utf-8")):
            if not row or not row[0].strip().isdigit():
                continue
            verdict = row[1].strip().lower()
            if verdict not in ("true", "false"):
                raise ValueError(f"{path.name}: {row[0]}: {row[1]!r} is no verdict")
            found[int(row[0])] = (verdict == "true", ",".join(row[2:]).strip())
    return found


def count(out: Path, readers: list[str], settled: Path | None) -> None:
    rows = list(csv.DictReader((out / "drawn.csv").open(encoding="utf-8")))
    said = {reader: verdicts(out, reader) for reader in readers}
    final = {}
    if settled is not None:
        final = {
            int(row[0]): row[1].strip() == "true" for row in csv.reader(settled.open()) if row and row[0].isdigit()
        }
    tables: dict[str, dict[str, list[int]]] = {
        "package": defaultdict(lambda: [0, 0]),
        "rule": defaultdict(lambda: [0, 0]),
    }
    differ, missing = [], 0
    for row in rows:
        number = int(row["number"])
        given = [said[reader][number][0] for reader in readers if number in said[reader]]
        if len(given) < len(readers):
            missing += 1
            continue
        if len(set(given)) > 1:
            differ.append(row)
            if number not in final:
                continue
        verdict = final.get(number, given[0])
        for name, table in tables.items():
            table[row[name]][0] += verdict
            table[row[name]][1] += 1
    for name, table in tables.items():
        print(f"\n{name:<24}{'true':>5}{'of':>5}{'precision':>11}   95 %")
        for key, (good, total) in sorted(table.items()):
            low, high = wilson(good, total)
            print(f"{key:<24}{good:>5}{total:>5}{good / total:>11.2f}   {low:.2f}-{high:.2f}")
    total = [sum(column) for column in zip(*tables["package"].values(), strict=True)] or [0, 0]
    print(f"\nall {total[0]} of {total[1]}; {missing} not judged by all; the readers differ on {len(differ)}:")
    for row in differ:
        said_so = "; ".join(f"{reader}: {said[reader][int(row['number'])]}" for reader in readers)
        print(f"  {row['number']} {row['package']} {row['rule']} {row['path']}:{row['line']}  {said_so}")
    print("false by rule:", dict(Counter(r["rule"] for r in rows if _false(int(r["number"]), said, final))))


def _false(number: int, said: dict[str, dict[int, tuple[bool, str]]], final: dict[int, bool]) -> bool:
    if number in final:
        return not final[number]
    given = [verdict[number][0] for verdict in said.values() if number in verdict]
    return bool(given) and not any(given)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    drawing = commands.add_parser("draw")
    drawing.add_argument("folders", nargs="+", type=Path)
    drawing.add_argument("--each", type=int, default=60)
    drawing.add_argument("--out", type=Path, required=True)
    drawing.add_argument(
        "--without", type=Path, action="append", default=[], help="a CSV of findings judged before, which are left out"
    )
    drawing.add_argument("--seed", type=int, default=SEED, help="another one draws a fresh sample")
    counting = commands.add_parser("count")
    counting.add_argument("out", type=Path)
    counting.add_argument("--reader", action="append", required=True)
    counting.add_argument("--settled", type=Path)
    options = parser.parse_args()
    if options.command == "draw":
        draw_all(options.folders, options.each, options.out, options.seed, options.without)
    else:
        count(options.out, options.reader, options.settled)


if __name__ == "__main__":
    main()
