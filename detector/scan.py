"""The static half from paths to findings: which files, facts, linking, rules; cached and in parallel.

Results depend on the files, the settings and the tool, never on the number of processes, the order of files, or on what
was cached. Findings are not ranked here.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Finding, Mark, Problem
from awp_lint.detector.project.cache import Cache, key
from awp_lint.detector.project.files import FoundFile, find_files
from awp_lint.detector.project.kinds import Kind
from awp_lint.detector.project.reading import ReadFile, read_all
from awp_lint.detector.project.stored import dumps, loads

Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Unit:
    """A loop or function whose iterations or calls the profile run may count: ``unit`` is "step" or "request"."""

    path: str  # absolute
    module: str
    mark: Mark
    unit: str


@dataclass(frozen=True, slots=True)
class ScanResult:
    """What a scan found. ``findings`` are unranked, by path and line, suppressed ones among them (and marked so);
    ``unused`` are suppressions that silenced nothing."""

    findings: tuple[Finding, ...]
    problems: tuple[Problem, ...]
    unused: tuple[Problem, ...]
    units: tuple[Unit, ...]
    files: int
    lines: int
    seconds: float
    digests: Mapping[str, bytes] = field(default_factory=dict)  # what the files with fixes held, by shown path

    @property
    def suppressed(self) -> int:
        """How many findings a comment in the code silences."""
        return sum(finding.suppressed is not None for finding in self.findings)


def files_to_scan(paths: Sequence[str], settings: Settings, cwd: str | None = None) -> tuple[list[str], list[Problem]]:
    """The shown paths of the files that a scan would take, and what is wrong with ``paths``."""
    found, problems = find_files(paths, settings, cwd or os.getcwd())
    kept, _ = read_all([file for file in found if file.kind is not Kind.PYTHON], _may_matter)
    wanted = {file.found.path for file in kept}
    return [file.path for file in found if file.kind is Kind.PYTHON or file.path in wanted], problems


def _may_matter(raw: bytes) -> bool:
    from awp_lint.rules.serving.configfiles.screening import may_matter

    return may_matter(raw)


def scan(
    paths: Sequence[str], settings: Settings, *, progress: Progress | None = None, cwd: str | None = None
) -> ScanResult:
    """Scan files and folders. Never raises for what is in them; ``progress`` gets (done, total) files."""
    started = time.monotonic()
    found, problems = find_files(paths, settings, cwd or os.getcwd())
    files, unread = read_all(found, _may_matter)
    kept = {file.found.path for file in files}
    cache = Cache(settings.cache)
    try:
        result = _scan(files, settings, cache, progress)
    finally:
        cache.close()
    fixed = {finding.path for finding in result.findings if finding.fix is not None and finding.fix.edits}
    return replace(
        result,
        digests={file.found.path: file.digest for file in files if file.found.path in fixed},
        problems=tuple(sorted([*problems, *unread, *result.problems], key=_place)),
        files=sum(file.kind is Kind.PYTHON or file.path in kept for file in found),
        seconds=time.monotonic() - started,
    )


def _place(problem: Problem) -> tuple[str, int, str]:
    return problem.path, problem.line or 0, problem.message


def _scan(files: Sequence[ReadFile], settings: Settings, cache: Cache, progress: Progress | None) -> ScanResult:
    """The whole run from the cache when nothing changed, else file by file."""
    run_key = key("run", repr(settings), *(part for file in files for part in (file.identity, file.digest)))
    known = cache.get_many((run_key,)).get(run_key)
    if known is not None:
        result = loads(known)
        assert isinstance(result, ScanResult)
        if progress is not None:
            progress(len(files), len(files))
        return result
    from awp_lint.detector.pipeline import analyse

    result = analyse(files, settings, cache, progress)
    cache.put_many({run_key: dumps(result)})
    return result


__all__ = ["FoundFile", "ScanResult", "Unit", "files_to_scan", "scan"]
