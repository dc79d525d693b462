"""Findings in libraries whose code runs hot, looked for while the program runs.

The agents tell which files run in a unit. Those that nobody asked to be scanned, that lie in neither Python nor torch
itself and that have to do with torch are scanned in a process of their own, together with the user's code where that is
small, so that callers are known; what is found is marked in the running program and priced like anything else. So are
statements that a census saw waiting, in whatever file.
"""

from __future__ import annotations

import contextlib
import json
import os
import pickle
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Finding, Frame, Verdict
from awp_lint.detector.profiling import census
from awp_lint.detector.profiling.launch import mark_row
from awp_lint.detector.profiling.run import digests, plan
from awp_lint.detector.profiling.session import PlannedMark, Session
from awp_lint.detector.scan import Unit

ROOM = 4096  # marks that may come late
_FILES = 80  # that are looked at
_SECONDS = 45.0  # for the scan
_TOGETHER = 0.5  # s for other processes to tell theirs, once one has
_OWN_FILES = 500  # of the user: with more, linking them anew takes longer than a program would wait
# Not worth looking at: what waits and launches there is torch's own affair.
_INNER = frozenset(("torch", "torchgen", "functorch", "torchvision", "triton", "numpy", "awp_lint"))


@dataclass(slots=True)
class Dependencies:
    """The parent's part of a run. ``own`` are the real paths of the files that were scanned."""

    paths: Sequence[str]
    own: frozenset[str]
    settings: Settings
    known: Sequence[Finding] = ()  # of the user's code
    room: int = ROOM
    marks: tuple[PlannedMark, ...] = ()
    findings: list[Finding] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    seconds: float = 0.0  # that the program's windows waited
    _asked: float = 0.0
    _answered: bool = False
    _scan: _Scan | None = None

    @property
    def roots(self) -> list[str]:
        """Real paths of what the user asked to be scanned."""
        return [os.path.realpath(path) for path in self.paths]

    def poll(self, folder: Path, first: int) -> None:
        """Called again and again while the program runs; ``first`` is the number of the next mark."""
        if self._answered:
            return
        now = time.monotonic()
        if self._scan is None:
            told = list(folder.glob("p*.*/hot.txt"))
            if told and not self._asked:
                self._asked = now
            if not self._asked or now < self._asked + _TOGETHER:
                return
            files = self._wanted(told)
            if not files:
                self._take([], [], folder, first)
                return
            # unsure ones too: here the run tells whether they cost anything
            self._scan = _Scan(self._context(), files, replace(self.settings, confidence=Confidence.LOW))
        self.seconds = now - self._asked
        if self._scan.done():
            found, units, fault = self._scan.result()
            if fault:
                self.notes.append(f"dependencies were not looked at: {fault}")
            self._take(found, units, folder, first)
        elif self.seconds > _SECONDS:
            self.notes.append(f"dependencies were not looked at: their scan took longer than {_SECONDS:g} s")
            self._take([], [], folder, first)

    def close(self) -> None:
        """The program has ended."""
        if self._scan is not None:
            if not self._answered:
                self.notes.append("the program ended while its dependencies were scanned: they have no marks")
            self._scan.close()
            self._scan = None

    def _wanted(self, told: Sequence[Path]) -> list[str]:
        names: set[str] = set()
        for place in told:
            with contextlib.suppress(OSError):
                names.update(place.read_text(encoding="utf-8", errors="surrogateescape").split("\n"))
        files = sorted({os.path.realpath(name) for name in names if name} - self.own)
        files = [name for name in files if is_dependency(name, self.roots)]
        if len(files) > _FILES:
            self.notes.append(f"of {len(files)} dependency files that run hot {_FILES} were looked at")
        return files[:_FILES]

    def _context(self) -> list[str]:
        return list(self.paths) if len(self.own) <= _OWN_FILES else []

    def _take(self, found: Sequence[Finding], units: Sequence[Unit], folder: Path, first: int) -> None:
        """Number the marks of what the scan found and of the waits that nothing explains, and answer."""
        self.findings = [replace(f, origin="dependency") for f in found if f.suppressed is None and f.mark is not None]
        self.findings += census.unflagged(census.told(folder), [*self.known, *self.findings], self.own)
        marks = plan(self.findings, units, first)
        if len(marks) > self.room:
            self.notes.append(f"of {len(marks)} marks in dependencies {self.room} were placed")
        self.marks = tuple(marks[: self.room])
        self._answered = True
        rows = [mark_row(mark) for mark in self.marks]
        text = json.dumps({"first": first, "digests": digests(self.marks), "marks": rows})
        temporary = folder / "late.tmp"
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(folder / "late.json")

    def of(self, session: Session) -> list[Finding]:
        """The findings, with the line of the user's code that led to each."""
        led: dict[tuple[str, int, int], tuple[str, int, str]] = {}
        for process in session.processes:
            for planned in process.marks:
                if planned.index in process.led:
                    led.setdefault((planned.path, planned.mark.line, planned.mark.column), process.led[planned.index])
        return [_led(finding, led) for finding in self.findings]


def _led(finding: Finding, led: dict[tuple[str, int, int], tuple[str, int, str]]) -> Finding:
    assert finding.mark is not None
    place = led.get((os.path.realpath(finding.path), finding.mark.line, finding.mark.column))
    if place is None:
        return finding
    path, line, function = place
    shown = os.path.relpath(path)
    shown = path if shown.startswith("..") else shown.replace(os.sep, "/")
    return replace(
        finding,
        chain=(*finding.chain, Frame(shown, line, function)),
        why=(*finding.why, f"in this run {shown}:{line} ({function}) led there"),
    )


def dependencies_of(paths: Sequence[str], settings: Settings, known: Sequence[Finding] = ()) -> Dependencies:
    """The parent's part for a scan of these paths."""
    from awp_lint.detector.project.files import find_files

    own = frozenset(os.path.realpath(file.real) for file in find_files(paths, settings, os.getcwd())[0])
    return Dependencies(paths, own, settings, known)


def shown(findings: Sequence[Finding], level: Confidence) -> list[Finding]:
    """Those that a report shows: what ran, and of unsure ones what was confirmed.

    In a library, what did not run here is nobody's affair.
    """
    silent = (Verdict.NOT_REACHED, Verdict.STATIC_ONLY)
    ran = [(f, f.evidence.verdict) for f in findings if f.evidence is not None and f.evidence.verdict not in silent]
    return [f for f, verdict in ran if verdict is Verdict.CONFIRMED or f.confidence.order >= level.order]


def is_dependency(path: str, roots: Sequence[str] = ()) -> bool:
    """Whether a file (real path) is a library's and has to do with torch."""
    if not path.endswith(".py"):
        return False
    parts = Path(path).parts
    packaged = next((i for i in range(len(parts) - 1, -1, -1) if parts[i] in ("site-packages", "dist-packages")), None)
    if packaged is not None:
        if parts[packaged + 1].removesuffix(".py") in _INNER:
            return False
    elif any(path.startswith(os.path.realpath(folder) + os.sep) for folder in _python_folders()):
        return False
    try:
        raw = Path(path).read_bytes()
    except OSError:
        return False
    return b"torch" in raw


def _python_folders() -> set[str]:
    return {sysconfig.get_path("stdlib"), sysconfig.get_path("platstdlib"), str(Path(__file__).resolve().parents[1])}


class _Scan:
    """The scan in a process of its own: the parent goes on handing signals to the program meanwhile."""

    def __init__(self, paths: Sequence[str], files: Sequence[str], settings: Settings) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="awp-lint-deps-"))
        (self.folder / "job").write_bytes(pickle.dumps((list(paths), list(files), settings)))
        code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import main; main({str(self.folder)!r})"
        self.process = subprocess.Popen(
            [sys.executable, "-I", "-c", code],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is the program's
        )

    def done(self) -> bool:
        return self.process.poll() is not None

    def result(self) -> tuple[list[Finding], list[Unit], str]:
        """Findings and units in the files, and what went wrong."""
        try:
            found: tuple[list[Finding], list[Unit], str] = pickle.loads((self.folder / "result").read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return [], [], "their scan failed"
        return found

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)


def main(folder: str) -> None:
    """The scanning process."""
    place = Path(folder)
    paths, files, settings = pickle.loads((place / "job").read_bytes())
    answer: Any
    try:
        answer = _scanned(paths, files, settings)
    except Exception as fault:
        answer = ([], [], f"{type(fault).__name__}: {fault}")
    (place / "result").write_bytes(pickle.dumps(answer))


def _scanned(paths: Sequence[str], files: Sequence[str], settings: Settings) -> tuple[list[Finding], list[Unit], str]:
    from awp_lint.detector.scan import scan

    wanted = frozenset(files)
    result = scan([*paths, *files], settings)
    findings = [f for f in result.findings if f.cell is None and os.path.realpath(f.path) in wanted]
    units = [unit for unit in result.units if os.path.realpath(unit.path) in wanted]
    return findings, units, ""
