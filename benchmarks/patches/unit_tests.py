"""A package's own unit tests on modules that `--fix --unsafe-fixes` changed: do the same ones pass as before?

    python benchmarks/patches/unit_tests.py TREE PACKAGE [--modules 10] [--tests 20] [--seed 6] [--python PYTHON]
                                            [--fixed FOLDER] [--tests-in tests/models]

TREE is an unpacked source tree with ``src/PACKAGE`` and ``tests``. The package is copied and fixed as a whole (or
``--fixed`` names one that was: FOLDER/PACKAGE). Every changed file has to compile. A changed module's tests are the
test file that names most of its classes and functions; of the modules that have one, some are drawn by the seed, and of
each one's tests some more. Both versions run them in processes of their own with PYTHON (which has what they need),
on the CPU, without a network. Printed are the outcomes before and after, and how many of the changed functions ran. The
exit code is 1 where a test that passed fails, or a file does not compile.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

HERE = Path(__file__).resolve().parent


def changed_files(before: Path, after: Path) -> list[str]:
    """Files below both that differ, by name."""
    files = sorted(path.relative_to(after).as_posix() for path in after.rglob("*.py"))
    return [name for name in files if (before / name).read_bytes() != (after / name).read_bytes()]


def changed_functions(before: Path, after: Path) -> dict[int, str]:
    """First lines and names of the innermost functions whose code differs, by the lines of the new file."""
    old, new = (_functions(path) for path in (before, after))
    return {line: name for name, (line, code) in new.items() if name in old and old[name][1] != code}


def _functions(path: Path) -> dict[str, tuple[int, str]]:
    """Every function's first line (its decorators' too, as code objects count) and its code."""
    found: dict[str, tuple[int, str]] = {}

    def visit(node: ast.AST, around: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                name = f"{around}.{child.name}"
                visit(child, name)
                if not isinstance(child, ast.ClassDef):
                    first = min([child.lineno, *(d.lineno for d in child.decorator_list)])
                    found[name] = (first, ast.dump(child))
            else:
                visit(child, around)

    visit(ast.parse(path.read_text(encoding="utf-8")), "")
    return found


def tests_of(module: Path, tests: dict[Path, Counter[str]]) -> Path | None:
    """The test file that names most of a module's public classes and functions; None where none names any."""
    tree = ast.parse(module.read_text(encoding="utf-8"))
    names = [n.name for n in tree.body if isinstance(n, ast.ClassDef | ast.FunctionDef) and not n.name.startswith("_")]
    scores = {path: sum(words[name] > 0 for name in names) for path, words in tests.items()}
    stem = re.sub(r"^(modeling|scheduling|pipeline|transformer)_", "", module.stem)
    best = max(scores, key=lambda path: (scores[path], stem in path.stem, -len(path.as_posix()), path.as_posix()))
    return best if scores[best] else None


def run_tests(
    python: str, tree: Path, package: Path, test: Path, options: argparse.Namespace, watched: Path | None = None
) -> tuple[dict[str, str], set[int]]:
    """Outcomes by test (``passed``, ``failed``, ``skipped``), and where the watched file's functions that ran begin."""
    with tempfile.TemporaryDirectory(prefix="unit-") as folder:
        report, seen = Path(folder) / "report.xml", Path(folder) / "seen"
        env = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(package.parent), str(HERE)]),
            "HF_HUB_OFFLINE": "1",
            "CUDA_VISIBLE_DEVICES": "",
            "SAMPLE_TESTS": str(options.tests),
            "SAMPLE_SEED": str(options.seed),
            "SAMPLE_SEEN": str(seen),
            "SAMPLE_FILE": str(watched or ""),
            "OMP_NUM_THREADS": "1",
        }
        command = [python, "-m", "pytest", "-q", "-p", "sampled", "-p", "no:cacheprovider", "--timeout", "60"]
        command += [f"--junitxml={report}", str(test)]
        subprocess.run(command, cwd=tree, env=env, capture_output=True, timeout=1800)
        if not report.exists():
            return {}, set()
        outcomes = {}
        for case in ElementTree.parse(report).iter("testcase"):
            kinds = {child.tag for child in case}
            name = f"{case.get('classname', '').rpartition('.')[2]}.{case.get('name')}"
            outcomes[name] = "failed" if kinds & {"failure", "error"} else "skipped" if "skipped" in kinds else "passed"
        return outcomes, {int(line) for line in seen.read_text().split()} if seen.exists() else set()


def fix(tree: Path, package: str, folder: Path) -> Path:
    """A fixed copy of the package below ``folder``."""
    shutil.copytree(tree / "src" / package, folder / package, ignore=shutil.ignore_patterns("__pycache__"))
    words = [sys.executable, "-m", "awp_lint", package, "--fix", "--unsafe-fixes"]
    ran = subprocess.run(words, cwd=folder, capture_output=True, text=True)
    print(f"--fix --unsafe-fixes: {ran.stderr.strip().splitlines()[0] if ran.stderr else 'nothing said'}")
    return folder / package


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tree", type=Path)
    parser.add_argument("package")
    parser.add_argument("--modules", type=int, default=10)
    parser.add_argument("--tests", type=int, default=20, help="tests a module, at most")
    parser.add_argument("--seed", type=int, default=6)
    parser.add_argument("--python", default=sys.executable)
    parser.add_argument("--fixed", type=Path, help="where a fixed copy of the package lies already")
    parser.add_argument(
        "--tests-in", action="append", metavar="FOLDER", help="of the tree; those elsewhere may need a network"
    )
    parser.add_argument("--only", action="append", metavar="FILE", help="these changed files instead of drawn ones")
    options = parser.parse_args()
    tree = options.tree.resolve()
    scratch = Path(tempfile.mkdtemp(prefix="unit-tests-"))
    try:
        after = (options.fixed.resolve() / options.package) if options.fixed else fix(tree, options.package, scratch)
        return compare(tree, tree / "src" / options.package, after, options)
    finally:
        shutil.rmtree(scratch)


def compare(tree: Path, before: Path, after: Path, options: argparse.Namespace) -> int:
    wrong: list[str] = []
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
    pairs = {name: test for name in files if (test := tests_of(before / name, tests)) is not None}
    chosen: Sequence[str] = options.only or sorted(
        random.Random(options.seed).sample(sorted(pairs), min(options.modules, len(pairs)))
    )
    print(f"{len(pairs)} of them have tests; {len(chosen)} drawn by seed {options.seed}")
    print(f"{'module':64}{'before':>16}{'after':>16}  changed functions that ran")
    for name in chosen:
        first, _ = run_tests(options.python, tree, before, pairs[name], options)
        second, ran = run_tests(options.python, tree, after, pairs[name], options, after / name)
        functions = changed_functions(before / name, after / name)
        print(f"{name:64}{_counts(first):>16}{_counts(second):>16}  {len(ran & functions.keys())} of {len(functions)}")
        sys.stdout.flush()
        worse = [test for test, outcome in first.items() if outcome == "passed" and second.get(test) != "passed"]
        wrong += [f"{name}: {test} {second.get(test, 'is not there')}" for test in worse]
        if not first:
            print(f"    {pairs[name].relative_to(tree)} could not be run")
    print("passed, failed, skipped tests")
    for line in wrong:
        print(f"WRONG {line}")
    return 1 if wrong else 0


def _counts(outcomes: dict[str, str]) -> str:
    counted = Counter(outcomes.values())
    return f"{counted['passed']}, {counted['failed']}, {counted['skipped']}"


if __name__ == "__main__":
    sys.exit(main())
