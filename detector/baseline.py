"""Known findings: a file that a project adopts the linter with, and matching that survives moved code.

A finding is first looked for by its fingerprint (rule, module, scope, normalised code, ordinal: no line numbers). What
is left over matches by rule and code alone, each known finding at most once, so that a file or a class can be renamed.
"""

from __future__ import annotations

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Finding

SCHEMA = "awp-lint-baseline/1"
_MAX_BYTES = 64_000_000
_HALF = re.compile("[\ud800-\udfff]")  # a byte of a file's name that is no UTF-8


@dataclass(frozen=True, slots=True)
class Known:
    """A finding as a baseline keeps it. ``path`` and ``function`` are for readers, ``group`` for moved code."""

    path: str
    rule: str
    function: str
    id: str
    group: str | None


@dataclass(frozen=True, slots=True)
class Matched:
    """``new`` in the order given; ``gone`` are known ones not met; ``moved`` maps new ids to known ones."""

    new: tuple[Finding, ...]
    known: tuple[Finding, ...]
    gone: tuple[Known, ...]
    moved: tuple[tuple[str, str], ...] = ()


def known_of(finding: Finding) -> Known:
    """What a baseline keeps of a finding."""
    return Known(finding.path, finding.rule, finding.function, finding.id, finding.group)


def match(findings: Sequence[Finding], known: Iterable[Known]) -> Matched:
    """Tell new findings from known ones."""
    by_id: dict[str, list[Known]] = defaultdict(list)
    for entry in known:
        by_id[entry.id].append(entry)
    old: set[int] = set()
    for position, finding in enumerate(findings):
        if by_id[finding.id]:
            by_id[finding.id].pop()
            old.add(position)
    by_code: dict[tuple[str, str], list[Known]] = defaultdict(list)
    for entries in by_id.values():
        for entry in entries:
            if entry.group is not None:
                by_code[entry.rule, entry.group].append(entry)
    moved: list[tuple[str, str]] = []
    taken: set[Known] = set()
    for position, finding in enumerate(findings):
        candidates = by_code.get((finding.rule, finding.group or ""))
        if position in old or not candidates:
            continue
        # Code that stays in its file is the likelier origin.
        entry = min(candidates, key=lambda k: (k.path != finding.path, k.path))
        candidates.remove(entry)
        taken.add(entry)
        old.add(position)
        moved.append((finding.id, entry.id))
    return Matched(
        new=tuple(f for n, f in enumerate(findings) if n not in old),
        known=tuple(f for n, f in enumerate(findings) if n in old),
        gone=tuple(e for entries in by_id.values() for e in entries if e not in taken),
        moved=tuple(moved),
    )


def render(findings: Iterable[Finding]) -> str:
    """The baseline as JSON, a line a finding in a fixed order, so that two branches merge."""
    rows = sorted({known_of(f) for f in findings}, key=lambda k: (k.path, k.rule, k.function, k.id))
    lines = ",\n".join(f"  {json.dumps(asdict(row), ensure_ascii=False)}" for row in rows)
    lines = _HALF.sub(lambda half: f"\\u{ord(half.group()):04x}", lines)
    body = f"[\n{lines}\n ]" if rows else "[]"
    return f'{{\n "schema": "{SCHEMA}",\n "findings": {body}\n}}\n'


def read(path: str) -> list[Known]:
    """The baseline in a file. Raises :class:`UsageError` with one line."""
    try:
        data = Path(path).read_bytes()
    except OSError as error:
        raise UsageError(f"{path}: the baseline cannot be read: {error.strerror}") from None
    return parse(data, path)


def parse(data: bytes, name: str) -> list[Known]:
    """The baseline in some bytes. Raises :class:`UsageError` with one line that begins with ``name``."""
    if len(data) > _MAX_BYTES:
        raise UsageError(f"{name}: too large for a baseline")
    try:
        document = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{name}: the baseline is not JSON: {error}") from None
    if not isinstance(document, dict) or document.get("schema") != SCHEMA:
        raise UsageError(f"{name}: not a baseline ({SCHEMA}); make one with --write-baseline FILE")
    rows = document.get("findings")
    if not isinstance(rows, list):
        raise UsageError(f"{name}: a baseline without a list of findings")
    return [_known(row, name) for row in rows]


def _known(row: Any, name: str) -> Known:
    if isinstance(row, dict):
        words = [row.get(key) for key in ("path", "rule", "function", "id")]
        group = row.get("group")
        if all(isinstance(word, str) for word in words) and (group is None or isinstance(group, str)):
            path, rule, function, identity = (str(word) for word in words)
            return Known(path, rule, function, identity, group)
    raise UsageError(f"{name}: a baseline entry needs path, rule, function and id: {str(row)[:80]}")
