"""The same tests again and again, to find those that fail now and then.

    python benchmarks/hardening/repeats.py TESTS... [--times 200] [--seconds 3600] [--load 4]

``TESTS`` are pytest's: folders, files or single tests. A round runs each once, in one process, and the rounds stop
after ``--times`` or with the first that ends behind ``--seconds``; Ctrl-C ends them too, and what was done is printed.
Words for pytest itself come behind ``--``: ``-- --keep-duplicates FILE FILE`` runs a file twice a round.
With ``--load`` so many processes of ours do nothing but compute meanwhile. Printed: rounds, how often each test ran and
for how long, the load that was, and of each failure the test, the round and the last lines of what pytest said.
"""

from __future__ import annotations

import argparse
import contextlib
import multiprocessing
import os
import platform
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).resolve().parents[2]
_LINES = 25  # of a failure's text


@dataclass(slots=True)
class Tally:
    """What became of each test, over all rounds. Seconds of wall time."""

    seconds: dict[str, list[float]] = field(default_factory=dict)
    skipped: dict[str, int] = field(default_factory=dict)
    failures: list[tuple[int, str, str]] = field(default_factory=list)  # round, test, text

    def add(self, number: int, report: Path) -> None:
        """One round's JUnit file."""
        for case in ElementTree.parse(report).getroot().iter("testcase"):
            name = f"{case.get('classname', '').rpartition('.')[2]}::{case.get('name')}"
            wrong = [part for kind in ("failure", "error") for part in case.findall(kind)]
            if case.find("skipped") is not None:
                self.skipped[name] = self.skipped.get(name, 0) + 1
                continue
            self.seconds.setdefault(name, []).append(float(case.get("time", 0)))
            self.failures += [(number, name, part.text or part.get("message") or "") for part in wrong]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("tests", nargs="+")
    parser.add_argument("--times", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3600.0)
    parser.add_argument("--load", type=int, default=0, help="processes that compute beside the tests")
    options = parser.parse_args()
    tally = Tally()
    loads: list[float] = []
    lost = rounds = 0
    began = time.monotonic()
    with contextlib.suppress(KeyboardInterrupt), _busy(options.load), tempfile.TemporaryDirectory() as folder:
        while rounds < options.times and time.monotonic() - began < options.seconds:
            report = Path(folder, "report.xml")
            report.unlink(missing_ok=True)
            done = subprocess.run(
                [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", f"--junitxml={report}",
                 *options.tests],
                cwd=ROOT, capture_output=True, text=True,
            )  # fmt: skip
            rounds += 1
            loads.append(os.getloadavg()[0])
            if not report.exists():  # pytest itself went down
                lost += 1
                print(done.stdout[-2000:], done.stderr[-2000:], file=sys.stderr)
                continue
            tally.add(rounds, report)
            print(
                f"round {rounds}: {time.monotonic() - began:.0f} s, load {loads[-1]:.1f}, "
                f"{len(tally.failures)} failures so far",
                file=sys.stderr,
                flush=True,
            )
    _print(tally, rounds, lost, loads, time.monotonic() - began)


@contextlib.contextmanager
def _busy(count: int) -> Iterator[None]:
    """So many processes that compute, for as long as the block runs."""
    context = multiprocessing.get_context("spawn")
    own = [context.Process(target=_compute, daemon=True) for _ in range(count)]
    for process in own:
        process.start()
    try:
        yield
    finally:
        for process in own:
            process.kill()


def _compute() -> None:
    value = 1
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    while True:
        value = value * 6364136223846793005 % (1 << 64) + 1


def _print(tally: Tally, rounds: int, lost: int, loads: list[float], seconds: float) -> None:
    runs = sum(len(each) for each in tally.seconds.values())
    load = f"load {min(loads):.1f} to {max(loads):.1f}" if loads else "no round ended"
    print(f"Python {platform.python_version()}, {seconds:.0f} s, {load}")
    print(f"rounds: {rounds}, tests: {len(tally.seconds)}, runs: {runs}, failures: {len(tally.failures)}", end="")
    print(f", rounds without a result: {lost}" if lost else "")
    if tally.skipped:
        print(f"skipped always or sometimes: {', '.join(sorted(tally.skipped))}")
    longest = sorted(tally.seconds.items(), key=lambda item: -max(item[1]))[:8]
    for name, each in longest:
        print(f"  {min(each):6.1f} to {max(each):6.1f} s  {len(each):4d} runs  {name}")
    for number, name, text in tally.failures:
        print(f"failed in round {number}: {name}")
        print("\n".join(f"    {line}" for line in text.strip().splitlines()[-_LINES:]))


if __name__ == "__main__":
    main()
