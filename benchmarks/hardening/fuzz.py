"""The fuzz tests for as long as one likes.

    python benchmarks/hardening/fuzz.py [--seconds 600] [--examples 100]

Runs ``tests/test_fuzz.py`` again and again, each time with other random seeds, and counts what was tried: programs of a
grammar, real files damaged, any bytes, suppressions, baselines, edits; where hypothesmith is installed, programs of
Python's whole grammar too. What fails is printed as hypothesis shrank it.
"""

from __future__ import annotations

import argparse
import os
import platform
import re
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
_PASSING = re.compile(r"(\d+) passing(?: examples)?, (\d+) failing")
_TEST = re.compile(r"tests/test_fuzz.py::(\w+)")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument(
        "--examples", type=int, default=100, help="of the slow tests a round; twenty times as many of quick ones"
    )
    options = parser.parse_args()
    tried: Counter[str] = Counter()
    failures: list[str] = []
    rounds = 0
    began = time.monotonic()
    while time.monotonic() - began < options.seconds:
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-o", "timeout=0",
             "--hypothesis-show-statistics", "tests/test_fuzz.py"],
            cwd=ROOT, env={**os.environ, "AWP_LINT_FUZZ_EXAMPLES": str(options.examples)},
            capture_output=True, text=True,
        )  # fmt: skip
        rounds += 1
        name = ""
        for line in done.stdout.splitlines():
            if (found := _TEST.match(line)) is not None:
                name = found[1]
            elif (found := _PASSING.search(line)) is not None and name:
                tried[name] += int(found[1]) + int(found[2])
        if done.returncode:
            failures.append(done.stdout[-6000:])
            print(done.stdout[-6000:], file=sys.stderr)
    print(f"Python {platform.python_version()}, {time.monotonic() - began:.0f} s, {rounds} rounds")
    for name, count in sorted(tried.items()):
        print(f"  {count:>8}  {name}")
    print(f"rounds with failures: {len(failures)}")


if __name__ == "__main__":
    main()
