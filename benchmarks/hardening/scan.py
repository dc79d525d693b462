"""Files of all kinds through every static path: does one crash, hang or fill the memory?

    python benchmarks/hardening/scan.py FOLDER… [--seconds 600] [--every 1] [--seed 0] [--worst 5] [--unscreened]
    python benchmarks/hardening/scan.py FOLDER… --whole

Each file is scanned alone (all rules, every confidence, no cache, one process); its fixes, unsafe ones too, are put
into a copy of its text, which has to be Python afterwards; and the findings go through every format and the page. A
file with findings is also copied, to be fixed by the command itself until nothing is left to fix, and to be silenced by
comments. Files are taken in random order until the time is up, or Ctrl-C. The work is done in a child, so that a crash
of the interpreter costs one file; a file that takes longer than ten minutes hangs. Memory is the child's peak above
what it held before. Rules that fail are counted as crashes, although a scan survives them.

Most files hold none of the rules' words, and are only read: ``--unscreened`` runs all rules on all of every file.
``--whole`` scans each folder as one project, in a child of its own; memory is then all that the child ever held.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import faulthandler
import fnmatch
import io
import json
import os
import platform
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

_LONGEST = (600.0, 3600.0)  # s for a file and for a project, on a machine that may be shared
_WARM = Path(__file__).resolve().parents[2] / "corpus" / "rules" / "AWP101"
_FORMATS = ("json", "sarif", "github", "gitlab", "junit", "markdown")


def files_of(roots: list[str], every: int, seed: int) -> list[str]:
    """Files of the kinds that are scanned, below the folders, in random order."""
    from awp_lint.detector.config import Settings

    wanted = ("*.pyi", *Settings().include)
    found = []
    for root in roots:
        for folder, _, names in os.walk(root):
            found += [os.path.join(folder, name) for name in names if any(fnmatch.fnmatch(name, p) for p in wanted)]
    found.sort()
    random.Random(seed).shuffle(found)
    return found[::every]


def _peak(reset: bool) -> float:
    """MiB: the most that this process has held since the last reset (Linux)."""
    if reset:
        Path("/proc/self/clear_refs").write_text("5")
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def _is_fault(message: str) -> bool:
    """Of what a scan says of itself: a file that is no Python, too large or too deep is told, all else is a fault."""
    return "failed" in message or "no diff for" in message or "Error" in message.partition(":")[0]


def look_at(path: str, whole: bool = False) -> dict[str, Any]:
    """One file, or one folder with all that is in it: what went wrong, how long it took, what it held."""
    from awp_lint.detector.applying import Sources, with_diffs
    from awp_lint.detector.config import Settings
    from awp_lint.detector.finding import Confidence
    from awp_lint.detector.scan import scan
    from awp_lint.patches.plan import plan_files
    from awp_lint.patches.ranking import rank
    from awp_lint.patches.steploop.build import with_step_patches

    before = 0.0 if whole else _peak(reset=True)
    began = time.process_time()
    settings = Settings(confidence=Confidence.LOW, jobs=1, cache=False)
    result = scan([path], settings)
    scanned = time.process_time() - began
    problems = list(result.problems)
    findings = with_step_patches(result.findings, [path], settings, problems)
    fixes = 0
    faults: list[str] = []
    if findings:
        read = Sources(result.digests)
        ranked = rank(findings)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for patch in plan_files(read.usable(ranked, problems), read, True, ()):
                fixes += len(patch.applied)
                ast.parse(patch.after)
        _show(list(with_diffs(ranked, read, problems)), result.files, result.lines)
        if not whole:
            faults += _written(path)
    faults += [f"{p.path}: {p.message}" if whole else p.message for p in problems if _is_fault(p.message)]
    return {
        "faults": faults, "findings": len(findings), "fixes": fixes, "lines": result.lines, "files": result.files,
        "seconds": time.process_time() - began, "scan": scanned, "mib": _peak(reset=False) - before,
    }  # fmt: skip


def _show(findings: list[Any], files: int, lines: int) -> None:
    """The findings in every format."""
    from awp_lint.detector.output import machine_format
    from awp_lint.detector.reporting import json_report
    from awp_lint.detector.reporting import text as text_report
    from awp_lint.detector.reporting.html import page
    from awp_lint.detector.reporting.report import Report
    from awp_lint.detector.reporting.terminal import plain

    report = Report(findings=tuple(findings), files=files, lines=lines)
    plain(text_report.render(report, True))
    for name in _FORMATS:
        made = machine_format(name, report)
        if name in ("json", "sarif", "gitlab"):
            json.loads(made)
    page.render(json_report.as_dict(report), page.reader())


def _written(path: str) -> list[str]:
    """What goes wrong when copies of the file are fixed and silenced as the command does it."""
    from awp_lint.detector.cli import main as command

    faults = []
    for words in (("--fix", "--unsafe-fixes"), ("--write-ignores", "because")):
        with tempfile.TemporaryDirectory(prefix="hardening-") as folder:
            copy = Path(folder) / Path(path).name
            shutil.copyfile(path, copy)
            told = io.StringIO()
            with contextlib.redirect_stderr(told), contextlib.redirect_stdout(io.StringIO()):
                options = ("--confidence", "low", "--isolated", "--no-cache", "--jobs", "1", "--exit-zero")
                code = command([str(copy), *words, *options])
            lines = told.getvalue().splitlines()
            if code != 0:
                faults.append(f"{words[0]} ended with {code}: {' / '.join(lines[:3])}")
            faults += [line for line in lines if "failed" in line or "no diff for" in line]
            if copy.suffix in (".py", ".pyi"):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    ast.parse(copy.read_bytes())
    return faults


def _unscreened() -> None:
    """Let every rule look at all of every file."""
    from awp_lint.detector import work
    from awp_lint.rules import engine

    def everything(text: str, *_: Any) -> str:
        return text

    def yes(*_: Any) -> bool:
        return True

    setattr(work, "_to_search", everything)  # noqa: B010
    for name in ("has", "holds"):
        setattr(engine.Vocabulary, name, yes)


def child(unscreened: bool, whole: bool) -> None:
    """Answers a line of JSON for each path on standard input."""
    faulthandler.enable()
    if unscreened:
        _unscreened()
    if not whole:  # what is loaded once is no file's own
        look_at(str(min(_WARM.glob("bad_*.py"))))
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            answer = look_at(json.loads(line), whole)
        except BaseException:
            answer = {"crash": traceback.format_exc(limit=-4)}
        out.write(json.dumps(answer) + "\n")
        out.flush()


class Worker:
    """The child, started anew whenever it has died."""

    def __init__(self, unscreened: bool, whole: bool) -> None:
        self._longest = _LONGEST[whole]
        self._words = [*(["--unscreened"] if unscreened else []), *(["--whole"] if whole else [])]
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  (the child's, for its life)
        self._process: subprocess.Popen[str] | None = None

    def ask(self, path: str) -> dict[str, Any]:
        """What became of a file."""
        import select

        if self._process is None:
            command = [sys.executable, __file__, "--child", *self._words]
            self._process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors, text=True
            )
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(json.dumps(path) + "\n")
        process.stdin.flush()
        ready, _, _ = select.select([process.stdout], [], [], self._longest)
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
            self._process = None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--seconds", type=float, default=600)
    parser.add_argument("--every", type=int, default=1, help="take one file in so many")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--worst", type=int, default=5)
    parser.add_argument("--unscreened", action="store_true", help="all rules on all of every file")
    parser.add_argument("--whole", action="store_true", help="each folder as one project")
    parser.add_argument("--child", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options.unscreened, options.whole)
        return
    paths = options.folders if options.whole else files_of(options.folders, options.every, options.seed)
    above = os.path.commonpath([os.path.abspath(folder) for folder in options.folders])
    worker = Worker(options.unscreened, options.whole)
    began = time.monotonic()
    done: list[tuple[str, dict[str, Any]]] = []
    crashes: list[tuple[str, str]] = []
    signal.signal(signal.SIGINT, signal.default_int_handler)  # in the background too: the figures so far
    with contextlib.suppress(KeyboardInterrupt):
        for path in paths:
            if time.monotonic() - began > options.seconds:
                break
            answer = worker.ask(path)
            if options.whole:
                worker.close()  # so that no project holds what another has left
            short = os.path.relpath(path, above)
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
        total.update({name: answer[name] for name in ("files", "findings", "fixes", "lines")})
    what = f"projects ({total['files']} files)" if options.whole else "files"
    print(f"Python {platform.python_version()}; {len(done)} of {len(paths)} "
          f"{what} looked at in "
          f"{time.monotonic() - began:.0f} s, {total['lines']} lines, {total['findings']} findings, "
          f"{total['fixes']} fixes put into copies, all formats")  # fmt: skip
    print(f"crashes and faults: {len(crashes)}")
    for short, told in crashes[:20]:
        print(f"  {short}: {told.strip().splitlines()[-1]}")
    for name, unit in (("seconds", "s of CPU"), ("mib", "MiB above what was held")):
        print(f"worst, {unit}:")
        for short, answer in sorted(done, key=lambda item: -item[1][name])[: options.worst]:
            print(f"  {answer[name]:8.1f}  {short} ({answer['lines']} lines, {answer['findings']} findings)")
    middle = sorted(answer["seconds"] for _, answer in done)
    if middle:
        print(
            f"median {middle[len(middle) // 2]:.2f} s of CPU each, "
            f"99 of 100 below {middle[len(middle) * 99 // 100]:.2f} s"
        )


if __name__ == "__main__":
    main()
