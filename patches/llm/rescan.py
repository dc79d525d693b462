"""The linter's own word on a patched file: the finding has to be gone, and none may have come, at any level."""

from __future__ import annotations

import dataclasses
import os
from collections import Counter
from collections.abc import Sequence

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence, Finding
from awp_lint.detector.project import reading
from awp_lint.detector.project.source import Source
from awp_lint.detector.scan import scan

_READ = "AWP101"  # the device is read
_READS = frozenset((_READ, "AWP102", "AWP103", "AWP104", "AWP105", "AWP111"))  # in whatever spelling


class Rescan:
    """Scans of the project as it would be with a patched file; nothing on disk changes."""

    def __init__(self, paths: Sequence[str], settings: Settings) -> None:
        self._paths = list(paths)
        # In this process, which holds the patched text, and with all that any level shows.
        self._settings = dataclasses.replace(settings, confidence=Confidence.LOW, jobs=1)
        self._before: tuple[Finding, ...] | None = None

    def faults(self, finding: Finding, source: Source, patched: str) -> list[str]:
        """What speaks against the patched text of the finding's file."""
        if self._before is None:
            self._before = scan(self._paths, self._settings).findings
        real = os.path.realpath(source.path)
        reading.held[real] = source.encode(patched)
        try:
            result = scan(self._paths, self._settings)
        finally:
            reading.held.pop(real, None)
        broken = [p.message for p in result.problems if p.path == finding.path and "suppression" not in p.message]
        before, after = _places(self._before), _places(result.findings)
        place = (finding.path, finding.function, finding.rule)
        found = [f"the file cannot be scanned: {broken[0]}"] if broken and not after else []
        if after[place] >= before[place]:
            found.append(f"{finding.rule} is still found in {finding.function}")
        fewer = _one_for_several(self._before, result.findings, finding)
        for (path, function, rule), count in sorted((after - before).items()):
            if (path, function, rule) != place and not (rule == _READ and fewer):
                found.append(
                    f"{rule} is new in {function} of {os.path.basename(path)}" + ("" if count == 1 else f" ({count})")
                )
        return found


def _one_for_several(before: Sequence[Finding], after: Sequence[Finding], asked: Finding) -> bool:
    """Whether the function reads the device in fewer places than before, and nowhere in a deeper loop than the finding.

    The usual way to mend a read of every element is one read of them all, which may be a finding of its own.
    """
    old, new = (
        [f for f in found if (f.path, f.function) == (asked.path, asked.function) and f.rule in _READS]
        for found in (before, after)
    )
    deepest = max((_depth(f) for f in new if f.rule == _READ), default=0)
    return len(new) < len(old) and deepest <= _depth(asked)


def _depth(finding: Finding) -> int:
    """How many loops a finding lies in, callers' included."""
    return finding.frequency.count("×")


def _places(findings: Sequence[Finding]) -> Counter[tuple[str, str, str]]:
    return Counter((f.path, f.function, f.rule) for f in findings)
