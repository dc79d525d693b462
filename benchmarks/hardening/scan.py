"""Files of all kinds through every static path: does one crash, hang or fill the memory?

    python benchmarks/hardening/scan.py FOLDER… [--seconds 600] [--every 1] [--seed 0] [--worst 5]

Each file is scanned alone (all rules, every confidence, no cache, one process); its fixes, unsafe ones too, are put
into a copy of its text, which has to be Python afterwards; and the findings go through every format. Files are taken in
random order until the time is up. The work is done in a child, so that a crash of the interpreter costs one file; a
file that takes longer than ten minutes hangs. Memory is the child's peak above what it held before. Rules that fail are
counted as crashes, although a scan survives them.
"""

from __future__ import annotations

import argparse
import ast
import faulthandler
import json
import os
import platform
import random
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

_LONGEST = 600.0  # s, on a machine that may be shared
_FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown")


def files_of(roots: list[str], every: int, seed: int) -> list[str]:
    """Python files and notebooks below the folders, in random order."""
    found = []
    for root in roots:
        for folder, _, names in os.walk(root):
            found += [os.path.join(folder, name) for name in names if name.endswith((".py", ".pyi", ".ipynb"))]
    random.Random(seed).shuffle(found)
    return found[::every]


def _peak(reset: bool) -> float:
    """MiB: the most that this process has held since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def look_at(path: str) -> dict[str, Any]:
    """One file: what went wrong, how long it took, what it held."""
    from awp_lint.detector.applying import Sources, with_diffs
    from awp_lint.detector.config import Settings
    from awp_lint.detector.finding import Confidence
    from awp_lint.detector.output import machine_format
    from awp_lint.detector.reporting import text as text_report
    from awp_lint.detector.reporting.report import Report
    from awp_lint.detector.reporting.terminal import plain
    from awp_lint.detector.scan import scan
    from awp_lint.patches.plan import plan_files
    from awp_lint.patches.ranking import rank

    before = _peak(reset=True)
    began = time.process_time()
    faults: list[str] = []
    result = scan([path], Settings(confidence=Confidence.LOW, jobs=1, cache=False))
    scanned = time.process_time() - began
    # A file that is no Python, too large or too deep is told; anything else that a rule says of itself is a fault.
    faults += [p.message for p in result.problems if "failed" in p.message or "Error" in p.message.partition(":")[0]]
    findings = list(result.findings)
    fixes = 0
    if findings:
        problems: list[Any] = []
        read = Sources(result.digests)
        ranked = rank(findings)
        usable = read.usable(ranked, problems)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for patch in plan_files(usable, read, True, ()):
                fixes += len(patch.applied)
                if not path.endswith(".ipynb"):
                    ast.parse(patch.after)
        report = Report(findings=tuple(with_diffs(ranked, read, problems)), files=1, lines=result.lines)
        for name in _FORMATS:
            if name == "text":
                plain(text_report.render(report, True))
            else:
                made = machine_format(name, report)
                if name in ("json", "sarif", "gitlab"):
                    json.loads(made)
        faults += [p.message for p in problems]
    return {
        "faults": faults, "findings": len(findings), "fixes": fixes, "lines": result.lines,
        "seconds": time.process_time() - began, "scan": scanned, "mib": _peak(reset=False) - before,
    }  # fmt: skip


def child() -> None:
    """Answers a line of JSON for each path on standard input."""
    faulthandler.enable()
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = look_at(json.loads(line))
        except BaseException:
            answer = {"crash": traceback.format_exc(limit=-4)}
        out.write(json.dumps(answer) + "\n")
        out.flush()


class Worker:
    """The child, started anew whenever it has died."""

    def __init__(self) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (the child's, for its life)
        self._process: subprocess.Popen[str] | None = None

    def ask(self, path: str) -> dict[str, Any]:
        """What became of a file."""
        import select

        if self._process is None:
            command = [sys.executable, __file__, "--child"]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(path) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], _LONGEST)
        line = process.stdout.readline() if ready else ""
        if not line:
            process.kill()
            self._process = None
            return {"crash": f"the interpreter ended ({process.wait()})" if ready else "no end in sight: hangs"}
        return dict(json.loads(line))

    def close(self) -> None:
        """End the child."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=int, default=1, help="take one file in so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child()
        return
    paths = files_of(options.folders, options.every, options.seed)
    worker = Worker()
    began = time.monotonic()
    done: list[tuple[str, dict[str, Any]]] = []
    crashes: list[tuple[str, str]] = []
    for path in paths:
        if time.monotonic() - began > options.seconds:
            break
        answer = worker.ask(path)
        short = os.path.relpath(path, os.path.commonpath(options.folders) if options.folders else ".")
        if "crash" in answer:
            crashes.append((short, answer["crash"]))
            print(f"CRASH {short}\n{answer['crash']}", file=sys.stderr, flush=True)
            continue
        crashes += [(short, fault) for fault in answer["faults"]]
        for fault in answer["faults"]:
            print(f"FAULT {short}: {fault}", file=sys.stderr, flush=True)
        done.append((short, answer))
    worker.close()
    total: Counter[str] = Counter()
    for _, answer in done:
        total.update({name: answer[name] for name in ("findings", "fixes", "lines")})
    print(f"Python {platform.python_version()}; {len(done)} of {len(paths)} files looked at in "
          f"{time.monotonic() - began:.0f} s, {total['lines']} lines, {total['findings']} findings, "
          f"{total['fixes']} fixes put into copies, all formats")  # fmt: skip
    print(f"crashes and faults: {len(crashes)}")
    for short, what in crashes[:20]:
        print(f"  {short}: {what.strip().splitlines()[-1]}")
    for name, unit in (("seconds", "s of CPU"), ("mib", "MiB above what was held")):
        print(f"worst, {unit}:")
        for short, answer in sorted(done, key=lambda item: -item[1][name])[: options.worst]:
            print(f"  {answer[name]:8.1f}  {short} ({answer['lines']} lines, {answer['findings']} findings)")
    middle = sorted(answer["seconds"] for _, answer in done)
    if middle:
        print(
            f"median {middle[len(middle) // 2]:.2f} s of CPU a file, "
            f"99 of 100 below {middle[len(middle) * 99 // 100]:.2f} s"
        )


if __name__ == "__main__":
    main()
