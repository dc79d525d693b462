"""How the linter does on the apps of ``corpus/apps``: every finding against the app's list of faults and look-alikes.

    python benchmarks/apps.py                       all apps, static findings
    python benchmarks/apps.py chat --report r.json  a report made elsewhere, say by a profile run on a GPU

``faults.json`` of an app names places by function and by the text of a line, so that edits elsewhere do not move them.
A fault is found when a finding with its rule (or one of ``accepts``) touches its statement; a finding that touches no
fault is false unless its function and rule are listed as tolerated. Faults of rules that do not exist yet are left out.
"""

from __future__ import annotations

import argparse
import ast
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measure import save, table

APPS = Path(__file__).resolve().parent.parent / "corpus" / "apps"


@dataclass(frozen=True)
class Place:
    """A fault, a look-alike, or what is tolerated. Lines are 1-based and inclusive."""

    kind: str  # "faults", "lookalikes" or "tolerated"
    path: Path
    function: str
    rules: tuple[str, ...]  # of a fault: its own rule first, then what may stand for it
    code: str  # "" for the whole function
    first: int
    last: int
    why: str

    def covers(self, finding: dict[str, Any]) -> bool:
        """Whether the finding lies in the place's file and function and touches its lines."""
        return (
            Path(finding["path"]).resolve() == self.path
            and finding["function"] == self.function
            and finding["line"] <= self.last
            and finding["end_line"] >= self.first
        )

    def names(self, finding: dict[str, Any]) -> bool:
        """Whether the finding's rule, or one that it won over, is one of the place's."""
        return not {finding["rule"], *finding["also"]}.isdisjoint(self.rules)


def functions(tree: ast.Module) -> dict[str, ast.AST]:
    """Functions and classes by dotted name."""
    found: dict[str, ast.AST] = {}

    def walk(node: ast.AST, above: tuple[str, ...]) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                found[".".join((*above, child.name))] = child
                walk(child, (*above, child.name))
            else:
                walk(child, above)

    walk(tree, ())
    return found


def load(app: Path) -> list[Place]:
    """The places of an app. Raises ValueError for a function or line that is not there exactly once."""
    truth = json.loads((app / "faults.json").read_text(encoding="utf-8"))
    places = []
    for kind in ("faults", "lookalikes", "tolerated"):
        for entry in truth[kind]:
            path = (app / entry["path"]).resolve()
            text = path.read_text(encoding="utf-8")
            tree = ast.parse(text)
            node = functions(tree).get(entry["function"])
            if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                raise ValueError(f"{entry['path']}: no function {entry['function']}")
            first, last = node.lineno, node.end_lineno or node.lineno
            code = entry.get("code", "")
            if code:
                lines = text.splitlines()
                quoted = [_line(lines, node, line) for line in entry.get("region", [code])]
                first, last = quoted[0], _end(node, quoted[-1])
            rules = (entry["rule"], *entry.get("accepts", ())) if kind == "faults" else tuple(entry["rules"])
            places.append(Place(kind, path, entry["function"], rules, code, first, last, entry["why"]))
    return places


def _line(lines: Sequence[str], node: ast.FunctionDef | ast.AsyncFunctionDef, code: str) -> int:
    inside = range(node.lineno, (node.end_lineno or node.lineno) + 1)
    found = [number for number in inside if lines[number - 1].strip() == code]
    if len(found) != 1:
        raise ValueError(f"{node.name}: {code!r} stands there {len(found)} times")
    return found[0]


def _end(node: ast.AST, line: int) -> int:
    """Last line of the simple statement or the header that begins on a line."""
    for inner in ast.walk(node):
        if isinstance(inner, ast.stmt) and inner.lineno == line:
            body = getattr(inner, "body", None)
            return max(line, body[0].lineno - 1) if body else inner.end_lineno or line
    return line


@dataclass(frozen=True)
class Score:
    found: list[tuple[Place, dict[str, Any]]]
    missed: list[Place]
    false: list[tuple[dict[str, Any], Place | None]]  # with the look-alike that fooled us, if it is a listed one
    tolerated: int

    @property
    def precision(self) -> float:
        true = len({id(finding) for _, finding in self.found})
        return true / (true + len(self.false)) if true or self.false else 1.0

    @property
    def recall(self) -> float:
        total = len(self.found_places) + len(self.missed)
        return len(self.found_places) / total if total else 1.0

    @property
    def found_places(self) -> set[Place]:
        return {place for place, _ in self.found}


def score(findings: Iterable[dict[str, Any]], places: Sequence[Place], known_rules: set[str]) -> Score:
    """Hold findings (as in the JSON report) against the places of one app."""
    faults = [place for place in places if place.kind == "faults" and place.rules[0] in known_rules]
    found: list[tuple[Place, dict[str, Any]]] = []
    false: list[tuple[dict[str, Any], Place | None]] = []
    tolerated = 0
    for finding in findings:
        hits = [place for place in places if place.names(finding) and place.covers(finding)]
        hit_faults = [place for place in hits if place.kind == "faults"]
        if hit_faults:
            found += [(place, finding) for place in hit_faults if place in faults]
        elif any(place.kind == "tolerated" for place in hits):
            tolerated += 1
        else:
            false.append((finding, next((place for place in hits if place.kind == "lookalikes"), None)))
    hit = {place for place, _ in found}
    return Score(found, [place for place in faults if place not in hit], false, tolerated)


def lint(app: Path, confidence: str = "medium") -> dict[str, Any]:
    """The JSON report of a scan of one app from this level on. Raises RuntimeError if the scan fails."""
    with tempfile.TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        command = [sys.executable, "-m", "awp_lint", str(app), "--isolated", "--no-cache"]
        command += ["--confidence", confidence, "--format", "json", "--output", str(report)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode not in (0, 1):
            raise RuntimeError(f"{app.name}: exit code {done.returncode}: {done.stderr.strip()}")
        return dict(json.loads(report.read_text(encoding="utf-8")))


def known_rules() -> set[str]:
    """The ids of the rules that exist."""
    from awp_lint.rules.registry import all_rules

    return {rule.id for rule in all_rules()}


def describe(app: Path, result: Score) -> str:
    rows = [["fault", "rule", "line", "verdict", "host ms", "saving %"]]
    for place, finding in result.found:
        evidence = finding.get("evidence") or {}
        saving = evidence.get("predicted_saving") or {}
        host = evidence.get("host_ms")
        rows.append([
            place.code[:60], finding["rule"], str(finding["line"]), evidence.get("verdict", ""),
            "" if host is None else f"{host:.3f}", f"{saving['pct']:.1f}" if saving else "",
        ])  # fmt: skip
    for place in result.missed:
        rows.append([place.code[:60], place.rules[0], str(place.first), "MISSED", "", ""])
    lines = [f"{app.name}: recall {result.recall:.2f}, precision {result.precision:.2f}", table(rows)]
    for finding, fooled in result.false:
        where = f"{Path(finding['path']).name}:{finding['line']}"
        lines.append(f"false: {finding['rule']} {where} {finding['message']}" + (f" ({fooled.why})" if fooled else ""))
    return "\n".join(lines)


def total(results: Sequence[Score]) -> str:
    """Precision and recall over all apps, findings and faults counted alike wherever they are."""
    true = sum(len({id(finding) for _, finding in result.found}) for result in results)
    false = sum(len(result.false) for result in results)
    found = sum(len(result.found_places) for result in results)
    faults = found + sum(len(result.missed) for result in results)
    precision = f"{true / (true + false):.2f}" if true + false else "none"
    recall = f"{found / faults:.2f}" if faults else "none"
    return (
        f"{len(results)} apps: precision {precision} ({true} of {true + false}), recall {recall} ({found} of {faults})"
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("apps", nargs="*", help="names below corpus/apps (default: all)")
    parser.add_argument("--report", type=Path, help="score this JSON report instead of scanning (one app)")
    parser.add_argument("--confidence", choices=("high", "medium", "low"), default="medium", help="lowest taken")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    args = parser.parse_args()
    apps = [APPS / name for name in args.apps] or sorted(path.parent for path in APPS.glob("*/faults.json"))
    if args.report and len(apps) != 1:
        parser.error("--report needs the name of one app")
    rules = known_rules()
    parts, figures = [], {}
    results = []
    for app in apps:
        report = json.loads(args.report.read_text(encoding="utf-8")) if args.report else lint(app, args.confidence)
        result = score(report["findings"], load(app), rules)
        parts.append(describe(app, result))
        results.append(result)
        figures[app.name] = {
            "recall": result.recall,
            "precision": result.precision,
            "faults": len(result.found_places) + len(result.missed),
            "missed": [f"{place.rules[0]} {place.function}: {place.code}" for place in result.missed],
            "false": [f"{finding['rule']} {finding['path']}:{finding['line']}" for finding, _ in result.false],
            "tolerated": result.tolerated,
        }
    text = "\n\n".join((*parts, total(results)))
    print(text)
    if args.save:
        save(args.save, {"apps": figures}, text)
    return 0


if __name__ == "__main__":
    sys.exit(main())
