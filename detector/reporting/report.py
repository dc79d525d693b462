"""What every renderer gets: one finished run as plain data."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from awp_lint.detector.finding import Finding, Problem, Verdict
from awp_lint.detector.semantics.view import Target

_HALF = re.compile("[\ud800-\udfff]")  # what stands for a byte that is no UTF-8, as names of files may hold


@dataclass(frozen=True)
class Report:
    """Findings in rank order, suppressed ones apart, and what else a reader must know."""

    findings: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()
    problems: tuple[Problem, ...] = ()
    target: Target = field(default_factory=Target)
    profile: Mapping[str, Any] | None = None
    files: int = 0
    lines: int = 0
    seconds: float = 0.0
    notes: tuple[str, ...] = ()

    @property
    def by_rule(self) -> dict[str, int]:
        """Number of findings by rule id, sorted by id."""
        return dict(sorted(Counter(f.rule for f in self.findings).items()))

    @property
    def by_confidence(self) -> dict[str, int]:
        """Number of findings by confidence."""
        return dict(sorted(Counter(f.confidence.value for f in self.findings).items()))

    @property
    def by_verdict(self) -> dict[str, int]:
        """Number of findings by verdict (``static_only`` without a run)."""
        return dict(sorted(Counter(verdict_of(f).value for f in self.findings).items()))

    @property
    def counted(self) -> int:
        """Findings that make the exit code 1."""
        return sum(verdict_of(f).counts for f in self.findings if f.origin == "project")


def verdict_of(finding: Finding) -> Verdict:
    """The finding's verdict; ``static_only`` where there was no run."""
    return finding.evidence.verdict if finding.evidence else Verdict.STATIC_ONLY


def as_json(value: object) -> str:
    """JSON as a report shows it, ending in a newline, and always UTF-8: bytes that are none are replaced."""
    return _HALF.sub("\ufffd", json.dumps(value, indent=1, ensure_ascii=False)) + "\n"
