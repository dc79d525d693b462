"""From the census's waits to findings: AWP002 at the exact statement, for every wait that no finding's mark covers."""

from __future__ import annotations

import ast
import hashlib
import os
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from awp_lint.detector.finding import (
    Confidence,
    Event,
    Finding,
    Fix,
    Mark,
    MarkKind,
    RootCause,
    Safety,
    Span,
)
from awp_lint.detector.profiling.modules import module_of
from awp_lint.detector.profiling.reader import process_folders, read_census
from awp_lint.detector.profiling.session import ProcessSession, Wait, WindowKind

RULE = "AWP002"

_REMEDY = "read it later, in one copy with others, or not at all; a choice between tensors can stay on the device"
_REGIONS = (MarkKind.LOOP, MarkKind.FUNCTION)


def told(folder: Path) -> list[Wait]:
    """The waits in a session's folder so far, over all processes."""
    found: dict[Wait, int] = {}
    for place in process_folders(folder):
        waits = read_census(place)
        for wait in waits if isinstance(waits, tuple) else ():
            key = replace(wait, times=0)
            found[key] = found.get(key, 0) + wait.times
    return [replace(wait, times=times) for wait, times in found.items()]


def unflagged(waits: Iterable[Wait], findings: Sequence[Finding], own: frozenset[str]) -> list[Finding]:
    """A finding for each wait that none covers. ``own``: real paths of the scanned files; others are libraries'."""
    known = _Known(findings)
    found: dict[tuple[str, Mark], Finding] = {}
    alike: Counter[tuple[str, str, str]] = Counter()
    for wait in sorted(waits, key=lambda wait: (wait.path, wait.line, wait.column or 0)):
        places = known.places(wait.path)
        mark = places.mark(wait) if places is not None else None
        if places is None or mark is None or known.explains(wait.path, mark) or (wait.path, mark) in found:
            continue
        kind = (wait.path, mark.function, places.text(mark))
        found[wait.path, mark] = _finding(wait, mark, places, wait.path in own, alike[kind])
        alike[kind] += 1
    return list(found.values())


def profile_object(processes: Sequence[ProcessSession], findings: Sequence[Finding]) -> dict[str, object] | None:
    """The report's ``census``; None where none was asked for."""
    asked = [process for process in processes if process.census is not None]
    if not asked:
        return None
    missing = [process.census for process in asked if isinstance(process.census, str)]
    if len(missing) == len(asked):
        return {"missing": missing[0], "units": 0, "waits": []}
    known = _Known([finding for finding in findings if finding.rule != RULE])
    windows = [w for p in asked for w in p.windows if w.kind is WindowKind.CENSUS]
    rows = [
        {
            "path": _shown(wait.path),
            "line": wait.line,
            "function": wait.function,
            "times": wait.times,
            "flagged": known.flags(wait),
        }
        for process in asked
        for wait in (process.census if isinstance(process.census, tuple) else ())
    ]
    rows.sort(key=lambda row: (-int(str(row["times"])), str(row["path"]), int(str(row["line"]))))
    return {"missing": None, "units": sum(len(w.ticks) for w in windows), "waits": rows}


class _Known:
    """What findings explain, and the sources, each read once."""

    def __init__(self, findings: Iterable[Finding]) -> None:
        self._marks: dict[str, list[Mark]] = {}
        for finding in findings:
            if finding.mark is not None and finding.cell is None:
                self._marks.setdefault(os.path.realpath(finding.path), []).append(finding.mark)
        self._read: dict[str, _Places | None] = {}

    def places(self, path: str) -> _Places | None:
        """A file's places; None where it cannot be read."""
        if path not in self._read:
            self._read[path] = _read(path)
        return self._read[path]

    def explains(self, path: str, mark: Mark) -> bool:
        """Whether a finding's mark covers a waiting one. Regions explain only what they are said to wait for."""
        return any(
            (one.kind not in _REGIONS or one.expects is Event.WAIT) and _overlap(one, mark)
            for one in self._marks.get(path, ())
        )

    def flags(self, wait: Wait) -> bool:
        """The same of a wait."""
        places = self.places(wait.path)
        mark = places.mark(wait) if places is not None else None
        return mark is not None and self.explains(wait.path, mark)


def _overlap(one: Mark, other: Mark) -> bool:
    """Whether one of two ranges holds the other."""
    (a, b), (c, d) = (((m.line, m.column), (m.end_line, m.end_column)) for m in (one, other))
    return (a <= c and d <= b) or (c <= a and b <= d)


class _Places:
    """The statements and expressions of one file."""

    def __init__(self, source: bytes) -> None:
        self.lines = source.splitlines(keepends=True)
        self.nodes: list[tuple[ast.stmt | ast.expr, str, int]] = []
        self._walk(ast.parse(source), "<module>", 0)

    def _walk(self, node: ast.AST, function: str, line: int) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt | ast.expr):
                self.nodes.append((child, function, line))
            name = getattr(child, "name", None)
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) and name is not None:
                dotted = name if function == "<module>" else f"{function}.{name}"
                first = min([child.lineno, *(item.lineno for item in child.decorator_list)])
                self._walk(child, dotted, line if isinstance(child, ast.ClassDef) else first)
            else:
                self._walk(child, function, line)

    def mark(self, wait: Wait) -> Mark | None:
        """The expression that waited; where columns are not known, the smallest statement of the line."""
        if wait.column is not None:
            wanted = (wait.line, wait.column, wait.end_line, wait.end_column)
            for node, function, line in self.nodes:
                where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
                if isinstance(node, ast.expr) and where == wanted:
                    return _mark(node, function, line)
        fitting = [
            (one, function, line)
            for node, function, line in self.nodes
            if isinstance(node, ast.stmt)
            for one in [_head(node)]
            if one is not None and one.lineno <= wait.line <= (one.end_lineno or one.lineno)
        ]
        if not fitting:
            return None
        node, function, line = min(fitting, key=lambda entry: (entry[0].end_lineno or 0) - entry[0].lineno)
        return _mark(node, function, line)

    def span(self, mark: Mark) -> Span:
        """A mark's range in code points."""
        begin = self.lines[mark.line - 1][: mark.column].decode("utf-8", "replace")
        end = self.lines[mark.end_line - 1][: mark.end_column].decode("utf-8", "replace")
        return Span(mark.line, len(begin) + 1, mark.end_line, len(end) + 1)

    def text(self, mark: Mark) -> str:
        """The source in a mark's range, on one line."""
        rows = self.lines[mark.line - 1 : mark.end_line]
        rows[-1] = rows[-1][: mark.end_column]
        rows[0] = rows[0][mark.column :]
        return " ".join(b"".join(rows).decode("utf-8", "replace").split())


def _head(node: ast.stmt) -> ast.stmt | ast.expr | None:
    """What of a statement runs by itself: of a compound one its test or what it walks over."""
    if isinstance(node, ast.If | ast.While):
        return node.test
    if isinstance(node, ast.For | ast.AsyncFor):
        return node.iter
    return None if hasattr(node, "body") else node


def _mark(node: ast.stmt | ast.expr, function: str, line: int) -> Mark:
    kind = MarkKind.CALL if isinstance(node, ast.Call) else MarkKind.STATEMENT
    end_line, end_column = node.end_lineno or node.lineno, node.end_col_offset or node.col_offset
    return Mark(kind, node.lineno, node.col_offset, end_line, end_column, function, line, Event.WAIT)


def _read(path: str) -> _Places | None:
    try:
        return _Places(Path(path).read_bytes())
    except (OSError, SyntaxError, ValueError):
        return None


def _finding(wait: Wait, mark: Mark, places: _Places, own: bool, ordinal: int) -> Finding:
    code = places.text(mark)
    short = code if len(code) <= 60 else code[:59] + "…"
    what = "\0".join((RULE, module_of(wait.path), mark.function, code, str(ordinal)))
    key = hashlib.blake2b(what.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest()
    return Finding(
        id=key,
        rule=RULE,
        name="unflagged-sync",
        path=_shown(wait.path),
        span=places.span(mark),
        function=mark.function,
        message=f"`{short}` waits for the device; no rule flagged it, torch itself told of the wait",
        why=(f"seen {wait.times} times in the census of this run",),
        root_cause=RootCause.RUNTIME,
        frequency="unknown",
        confidence=Confidence.HIGH,
        mark=mark,
        origin="project" if own else "dependency",
        fix=Fix(_REMEDY, Safety.MANUAL),
    )


def _shown(path: str) -> str:
    shown = os.path.relpath(path)
    return path if shown.startswith("..") else shown.replace(os.sep, "/")
