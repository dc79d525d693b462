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
    include_dependencies: bool = False  # whether findings in libraries count

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
        return sum(self.counts(finding) for finding in self.findings)

    def counts(self, finding: Finding) -> bool:
        """Whether a finding makes the exit code 1."""
        return verdict_of(finding).counts and (finding.origin == "project" or self.include_dependencies)


def verdict_of(finding: Finding) -> Verdict:
    """The finding's verdict; ``static_only`` where there was no run."""
    return finding.evidence.verdict if finding.evidence else Verdict.STATIC_ONLY


def as_json(value: object) -> str:
    """JSON as a report shows it, ending in a newline, and always UTF-8: bytes that are none are replaced."""
    return _HALF.sub("\ufffd", _indented(value, "\n")) + "\n"


def _indented(value: object, newline: str) -> str:
    """``json.dumps(value, indent=1, ensure_ascii=False)``, which writes indented text in Python only, at a third of its
    cost. ``newline`` ends a line and begins the next."""
    deeper = newline + " "
    if isinstance(value, Mapping) and value:
        names = [key if isinstance(key, str) else json.dumps(key) for key in value]
        rows = [f"{_string(n)}: {_indented(v, deeper)}" for n, v in zip(names, value.values(), strict=True)]
        return "{" + deeper + f",{deeper}".join(rows) + newline + "}"
    if isinstance(value, list | tuple) and value:
        return "[" + deeper + f",{deeper}".join([_indented(item, deeper) for item in value]) + newline + "]"
    return _string(value) if isinstance(value, str) else json.dumps(value)


_string = json.encoder.JSONEncoder(ensure_ascii=False).encode
