"""Other linters beside this one, on the apps of ``corpus/apps`` and by one scoring.

    python benchmarks/peers.py --bin VENV/bin --semgrep-rules FOLDER --save peers

``--bin`` is where the peers are installed (TorchFix, hotpath-ai, semgrep, transformers-mlinter, perflint; what is not
there is left out), ``--semgrep-rules`` holds the rules of Trail of Bits that name torch. Each peer runs with all of its
rules on.

The scoring is kinder than that of ``apps.py``, and the same for all: whatever a rule is called, a finding on a line
of a listed fault is true; one in a function whose small things are listed as tolerated counts neither way; anything
else is false. The three apps that are right as they are count as well.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from measure import run, save, table

import apps

#: What one tool found: file, line, rule.
Found = tuple[Path, int, str]
_GOOD = ("clicks", "embeddings", "painter")


def by_lines(pattern: str) -> Callable[[str], Iterable[Found]]:
    """A reader of output with one finding a line."""

    def read(output: str) -> Iterable[Found]:
        for match in re.finditer(pattern, output, re.MULTILINE):
            yield Path(match["path"]), int(match["line"]), match["rule"]

    return read


def hotpath(output: str) -> Iterable[Found]:
    for file in json.loads(output)["files"]:
        for finding in file["findings"]:
            yield Path(file["path"]), finding["line"], finding["rule_id"]


def semgrep(output: str) -> Iterable[Found]:
    for finding in json.loads(output)["results"]:
        yield Path(finding["path"]), finding["start"]["line"], finding["check_id"].rpartition(".")[2]


def awp_lint(output: str) -> Iterable[Found]:
    for finding in json.loads(output)["findings"]:
        yield Path(finding["path"]), finding["line"], finding["rule"]


@dataclass(frozen=True)
class Tool:
    """How a tool is called (the files or the folder come last) and how its output is read."""

    command: tuple[str, ...]
    read: Callable[[str], Iterable[Found]]
    files: bool = False  # wants files, not a folder
    names: str = "{}"  # files are renamed, where a tool only looks at some names


_LINT = (sys.executable, "-m", "awp_lint", "--isolated", "--no-cache", "--exit-zero", "--format", "json")
_PERFLINT = "W8101,W8102,W8201,W8202,R8203,W8204,W8205,W8301,W8401,W8402,W8403"


def tools(folder: Path, rules: Path | None) -> dict[str, Tool]:
    """What is installed."""
    program = {name: str(folder / name) for name in ("torchfix", "hotpath", "semgrep", "mlinter", "pylint")}
    found = {
        "awp-lint": Tool(_LINT, awp_lint),
        "awp-lint --confidence low": Tool((*_LINT, "--confidence", "low"), awp_lint),
        "hotpath-ai": Tool((program["hotpath"], "analyze", "--format", "json"), hotpath),
        "hotpath-ai, heuristics too": Tool(
            (program["hotpath"], "analyze", "--format", "json", "--include-heuristics"), hotpath
        ),
        "TorchFix, all rules": Tool(
            (program["torchfix"], "--select=ALL", "-j1"),
            by_lines(r"^(?P<path>.+?):(?P<line>\d+):\d+: (?P<rule>TOR\d+)"),
        ),
        "transformers-mlinter, all rules": Tool(
            (program["mlinter"], "--no-cache", "--no-progress", "--enable-all-trf-rules", "--github-annotations"),
            by_lines(r"file=(?P<path>[^,]+),line=(?P<line>\d+)[^\n]*?(?P<rule>TRF\d+)"),
            files=True,
            names="modeling_{}",
        ),
        "perflint": Tool(
            (
                *(program["pylint"], "--load-plugins=perflint", "--disable=all", f"--enable={_PERFLINT}"),
                "--msg-template={abspath}:{line}: {msg_id}",
            ),
            by_lines(r"^(?P<path>.+?):(?P<line>\d+): (?P<rule>[WR]8\d+)"),
            files=True,
        ),
    }
    if rules is not None:
        found["semgrep, rules of Trail of Bits on torch"] = Tool(
            (
                *(program["semgrep"], "scan", "--metrics=off", "--disable-version-check", "--jobs=1"),
                *("--json", "--quiet", f"--config={rules}"),
            ),
            semgrep,
        )
    return {name: tool for name, tool in found.items() if Path(tool.command[0]).exists()}


@dataclass
class Tally:
    """What a tool said of all apps."""

    faults: set[tuple[str, str, str]] = field(default_factory=set)  # found: app, function, code
    true: int = 0
    tolerated: int = 0
    false: int = 0
    on_good: int = 0
    cpu: float = 0.0
    rules: Counter[str] = field(default_factory=Counter)


def function_at(path: Path, line: int) -> str:
    """The innermost function around a line, dotted; ``<module>`` at top level."""
    best = "<module>"
    size = sys.maxsize
    for name, node in apps.functions(ast.parse(path.read_text(encoding="utf-8"))).items():
        last = getattr(node, "end_lineno", 0)
        inside = isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.lineno <= line <= last
        if inside and last - node.lineno < size:
            best, size = name, last - node.lineno
    return best


def look(tool: Tool, app: Path, tally: Tally) -> None:
    """Run a tool on a copy of an app and count what it says. Raises RuntimeError if its output cannot be read."""
    with tempfile.TemporaryDirectory(prefix="peers-") as name:
        copy = Path(name).resolve() / app.name
        originals: dict[Path, Path] = {}
        for path in sorted(app.rglob("*.py")):
            target = copy / path.relative_to(app)
            target = target.with_name(tool.names.format(target.name))
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, target)
            originals[target] = path
        done = run([*tool.command, *(map(str, originals) if tool.files else (str(copy),))], cwd=Path(name))
        tally.cpu += done.cpu
        try:
            found = sorted(
                {(originals[(Path(name) / path).resolve()], *rest) for path, *rest in tool.read(done.output)}
            )
        except (ValueError, KeyError) as error:
            raise RuntimeError(f"{tool.command[0]}, {app.name}: {error!r}: {done.error.strip()[-300:]}") from error
    places = apps.load(app)
    for path, line, rule in found:
        tally.rules[rule] += 1
        tally.on_good += app.name in _GOOD
        function = function_at(path, line)
        at = {"path": str(path), "function": function, "line": line, "end_line": line}
        hits = [place for place in places if place.covers(at)]
        faults = [place for place in hits if place.kind == "faults"]
        tally.faults |= {(app.name, place.function, place.code) for place in faults}
        tally.true += bool(faults)
        if not faults:
            tolerated = any(place.kind == "tolerated" and place.function == function for place in places)
            tally.tolerated += tolerated
            tally.false += not tolerated


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bin", type=Path, required=True, metavar="FOLDER", help="where the peers are installed")
    parser.add_argument("--semgrep-rules", type=Path, metavar="FOLDER")
    parser.add_argument("--save", metavar="NAME", help="also write benchmarks/results/NAME.json and .txt")
    options = parser.parse_args()
    folders = sorted(path.parent for path in apps.APPS.glob("*/faults.json"))
    lists = [place for app in folders for place in apps.load(app) if place.kind == "faults"]
    total = len({(place.path, place.function, place.code) for place in lists})
    tallies: dict[str, Tally] = {}
    for name, tool in tools(options.bin, options.semgrep_rules).items():
        tallies[name] = Tally()
        for app in folders:
            look(tool, app, tallies[name])
        print(f"{name}: done", file=sys.stderr, flush=True)
    text = report(tallies, len(folders), total)
    print(text)
    if options.save:
        save(
            options.save,
            {"tools": {name: {**vars(tally), "faults": len(tally.faults)} for name, tally in tallies.items()}},
            text,
        )
    return 0


def report(tallies: dict[str, Tally], count: int, total: int) -> str:
    """A row a tool, and which rules spoke."""
    rows: list[Sequence[str]] = [
        ["tool", f"faults found of {total}", "true", "neither", "false", "precision", "on the 3 good apps", "CPU s"]
    ]
    spoke = []
    for name, tally in tallies.items():
        judged = tally.true + tally.false
        rows.append([
            name, str(len(tally.faults)), str(tally.true), str(tally.tolerated), str(tally.false),
            f"{tally.true / judged:.2f}" if judged else "-", str(tally.on_good), f"{tally.cpu:.1f}",
        ])  # fmt: skip
        said = ", ".join(f"{rule} {count}" for rule, count in tally.rules.most_common(8)) or "nothing"
        spoke.append(f"  {name}: {said}")
    return "\n".join([f"{count} apps", table(rows), "", "rules that spoke most", *spoke])


if __name__ == "__main__":
    sys.exit(main())
