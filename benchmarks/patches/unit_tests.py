"""A package's own unit tests on modules that `--fix --unsafe-fixes` changed: do the same ones pass as before?

    python benchmarks/patches/unit_tests.py TREE PACKAGE [--modules 10] [--tests 6] [--seed 6] [--python PYTHON]
                                            [--fixed FOLDER] [--tests-in tests/models]

TREE is an unpacked source tree with ``src/PACKAGE`` and ``tests``. It is copied, and the package in the copy is fixed
as a whole (or ``--fixed`` names a folder with a package that was). Every changed file has to compile. A changed
module's tests are the test file that names most of its classes and functions. Of the modules that have one, twice as
many as are wanted are drawn by the seed: some of each one's tests, drawn by the seed too, run on the fixed tree, and
where they run lines that a fix wrote in a function's body, the module is compared: the same tests run on the tree as it
was. The others are passed over. The tests of one tree run in one process with PYTHON (which has what they need), on the
CPU, without a network. Printed are the outcomes before and after, how many tests and how many changed functions ran.
The exit code is 1 where a test that passed fails, or a file does not compile.
"""

from __future__ import annotations

import argparse
import ast
import difflib
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent
_Watched = dict[str, dict[int, list[int]]]


def changed_files(before: Path, after: Path) -> list[str]:
    """Files below both that differ, by name."""
    files = sorted(path.relative_to(after).as_posix() for path in after.rglob("*.py"))
    return [
        name
        for name in files
        if (before / name).exists() and (before / name).read_bytes() != (after / name).read_bytes()
    ]


def changed_functions(before: Path, after: Path) -> dict[int, list[int]]:
    """First lines of the functions of the new file in whose bodies lines changed, with those lines.

    A line belongs to the innermost function around it. Where lines were only taken out, the line behind counts.
    """
    old, new = (path.read_text(encoding="utf-8").splitlines() for path in (before, after))
    changed: set[int] = set()
    for tag, _, _, first, last in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if tag != "equal":
            changed |= set(range(first + 1, max(last, first + 1) + 1))
    found: dict[int, list[int]] = {}

    def visit(node: ast.AST, own: tuple[int, int] | None) -> None:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            own = min([node.lineno, *(d.lineno for d in node.decorator_list)]), node.body[0].lineno
        if own is not None and isinstance(node, ast.stmt | ast.expr) and node.lineno >= own[1]:
            lines = found.setdefault(own[0], [])
            lines += changed & set(range(node.lineno, (node.end_lineno or node.lineno) + 1)) - set(lines)
        for child in ast.iter_child_nodes(node):
            visit(child, own)

    visit(ast.parse("\n".join(new) + "\n"), None)
    taken: set[int] = set()
    for first in sorted(found, reverse=True):  # an inner function begins behind the outer one
        found[first] = sorted(set(found[first]) - taken)
        taken |= set(found[first])
    return {first: lines for first, lines in sorted(found.items()) if lines}


def tests_of(module: Path, tests: dict[Path, Counter[str]]) -> Path | None:
    """The test file that names most of a module's public classes and functions; None where none names any.

    Of several the one whose name has most words of the module's, then the one that names them most often.
    """
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = [n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and not n.name.startswith("_")]
    own = set(re.split("[_0-9]+", module.stem))

    def score(path: Path) -> tuple[int, int, int, str]:
        alike = len(own & set(re.split("[_0-9]+", path.stem)))
        return sum(tests[path][n] > 0 for n in names), alike, sum(tests[path][n] for n in names), path.as_posix()

    best = max(tests, key=score)
    return best if score(best)[0] else None


@dataclass(frozen=True)
class Ran:
    """Outcomes (``passed``, ``failed``, ``skipped``) of each test file's tests; lines of watched files that ran."""

    outcomes: dict[str, dict[str, str]] = field(default_factory=dict)
    lines: dict[str, set[int]] = field(default_factory=dict)
    loaded: frozenset[str] = frozenset()
    said: str = ""


def run_tests(tree: Path, tests: Sequence[Path], watched: _Watched, options: argparse.Namespace) -> Ran:
    """Some tests of each file, on the package of ``tree``."""
    with tempfile.TemporaryDirectory(prefix="unit-") as folder:
        report, seen, watching = (Path(folder) / name for name in ("report.xml", "seen", "watched"))
        watching.write_text(json.dumps(watched))
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(tree / "src"), str(HERE)]),
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "SAMPLE_TESTS": str(options.tests),
            "SAMPLE_SEED": str(options.seed),
            "SAMPLE_SEEN": str(seen),
            "SAMPLE_WATCHED": str(watching),
            "OMP_NUM_THREADS": "1",
        }
        command = [options.python, "-m", "pytest", "-q", "-p", "sampled", "-p", "no:cacheprovider", "--tb=line"]
        command += ["--continue-on-collection-errors", "--timeout", str(options.timeout), f"--junitxml={report}"]
        ran = subprocess.run([*command, *map(str, tests)], cwd=tree, env=env, capture_output=True, text=True)
        said = "\n".join(ran.stdout.splitlines()[-25:])
        if not report.exists() or not seen.exists():
            return Ran(said=said)
        outcomes: dict[str, dict[str, str]] = {}
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            words = case.get("classname", "").split(".")
            file = next((str(t) for t in tests if list(t.with_suffix("").parts) == words[: len(t.parts)]), "")
            name = f"{words[-1]}.{case.get('name')}"
            outcome = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
            outcomes.setdefault(file, {})[name] = outcome
        told = json.loads(seen.read_text())
        return Ran(outcomes, {f: set(lines) for f, lines in told["ran"].items()}, frozenset(told["loaded"]), said)


def fix(tree: Path, package: str) -> None:
    """All fixes, written to the package of a tree."""
    words = [sys.executable, "-m", "awp_lint", package, "--fix", "--unsafe-fixes"]
    ran = subprocess.run(words, cwd=tree / "src", capture_output=True, text=True)
    print(f"--fix --unsafe-fixes: {ran.stderr.strip().splitlines()[0] if ran.stderr else 'nothing said'}", flush=True)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("package")
    parser.add_argument("--modules", type=int, default=10)
    parser.add_argument("--tests", type=int, default=6, help="tests a module, at most")
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--timeout", type=int, default=300, help="seconds a test")
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--fixed", type=Path, help="a folder with a fixed copy of the package")
    parser.add_argument(
        "--tests-in", action="append", metavar="FOLDER", help="of the tree; those elsewhere may need a network"
    )
    parser.add_argument("--only", action="append", metavar="FILE", help="these changed files instead of drawn ones")
    options = parser.parse_args()
    tree = options.tree.resolve()
    with tempfile.TemporaryDirectory(prefix="unit-tests-") as folder:
        copy = Path(folder) / "tree"
        left_out = shutil.ignore_patterns("__pycache__", ".git")
        shutil.copytree(tree, copy, ignore=left_out)
        if options.fixed:
            shutil.rmtree(copy / "src" / options.package)
            shutil.copytree(options.fixed / options.package, copy / "src" / options.package, ignore=left_out)
        else:
            fix(copy, options.package)
        return compare(tree, copy, options)


def compare(tree: Path, copy: Path, options: argparse.Namespace) -> int:
    """Compile, draw, run and print; the exit code."""
    wrong: list[str] = []
    before, after = (root / "src" / options.package for root in (tree, copy))
    files = changed_files(before, after)
    for name in files:
        try:
            compile((after / name).read_bytes(), name, "exec")
        except SyntaxError as error:
            wrong.append(f"{name}:{error.lineno}: does not compile: {error.msg}")
    print(f"{len(files)} changed files, {len(wrong)} of them do not compile")
    tests = {
        path: Counter(re.findall(r"\w+", path.read_text(encoding="utf-8")))
        for folder in options.tests_in or ["tests"]
        for path in sorted((tree / folder).rglob("test_*.py"))
    }
    functions = {name: changed_functions(before / name, after / name) for name in files}
    pairs = {name: test for name in files if functions[name] and (test := tests_of(before / name, tests)) is not None}
    most = min(2 * options.modules, len(pairs))
    order = options.only or random.Random(options.seed).sample(sorted(pairs), most)
    print(f"{sum(map(bool, functions.values()))} of them have changes in functions, {len(pairs)} of these have tests")
    print(f"{len(order)} drawn by seed {options.seed}; passed, failed, skipped tests; functions whose new lines ran")
    print(f"{'module':64}{'before':>12}{'after':>12}  functions", flush=True)
    files_of = {name: pairs[name].relative_to(tree) for name in order}
    watched: _Watched = {str(after / name): functions[name] for name in order}
    second = run_tests(copy, sorted(set(files_of.values())), watched, options)
    hit = {name: _whose_lines_ran(functions[name], second.lines.get(str(after / name), set())) for name in order}
    chosen = [name for name in order if hit[name]][: options.modules]
    first = run_tests(tree, sorted({files_of[name] for name in chosen}), {}, options) if chosen else Ran()
    ran_tests = 0
    for name in order:
        was, now = (ran.outcomes.get(str(files_of[name]), {}) for ran in (first, second))
        if name not in chosen:
            loaded = str(after / name) in second.loaded
            why = "more than are wanted" if hit[name] else "no new line ran" if loaded else "not loaded"
            print(f"{name:64}{'':>12}{_counts(now):>12}  passed over: {why}")
            continue
        ran_tests += sum(outcome == "passed" for outcome in was.values())
        print(f"{name:64}{_counts(was):>12}{_counts(now):>12}  {len(hit[name])} of {len(functions[name])}")
        worse = [test for test, outcome in was.items() if outcome == "passed" and now.get(test) != "passed"]
        wrong += [f"{name}: {test} {now.get(test, 'is not there')}" for test in worse]
        if str(before / name) not in first.loaded:
            wrong.append(f"{name}: the tests of the tree as it was loaded another file")
    ran_functions = sum(len(hit[name]) for name in chosen)
    print(
        f"{len(chosen)} modules compared: {ran_tests} tests passed before, new lines of {ran_functions} functions ran"
    )
    if not second.outcomes or (chosen and not first.outcomes):
        wrong.append(f"the tests could not be run:\n{(first if second.outcomes else second).said}")
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if wrong else 0


def _whose_lines_ran(functions: dict[int, list[int]], ran: set[int]) -> list[int]:
    """The functions of which a changed line ran."""
    return [first for first, lines in functions.items() if ran & set(lines)]


def _counts(outcomes: dict[str, str]) -> str:
    counted = Counter(outcomes.values())
    return f"{counted['passed']}, {counted['failed']}, {counted['skipped']}"


if __name__ == "__main__":
    sys.exit(main())
