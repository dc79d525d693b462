"""Programs run under the agent: plans made from a program's text, and the Pythons to run it with."""

from __future__ import annotations

import ast
import functools
import hashlib
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from awp_lint.detector.finding import Event, Mark, MarkKind
from awp_lint.detector.profiling.launch import Plan
from awp_lint.detector.profiling.session import PlannedMark, ProcessSession

Wanted = tuple[str, str, str | None]  # kind, how its source begins (a call or statement: the whole text), unit


def plan_of(path: Path, wanted: Sequence[Wanted], module: str | None = None) -> Plan:
    """A plan with one mark for each wanted piece of source, in order; a text found several times gives several."""
    source = path.read_bytes()
    marks: list[PlannedMark] = []
    lines = source.splitlines(keepends=True)
    places = [(node, _text(lines, node), *rest) for node, *rest in _places(ast.parse(source), "<module>", 0)]
    for kind, text, unit in wanted:
        found = 0
        for node, segment, function, line in places:
            if not (segment == text or (kind in ("loop", "function") and segment.startswith(text))):
                continue
            if not _fits(node, kind) or any(_same(node, planned.mark) for planned in marks if planned.finding == text):
                continue
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                function = _dotted(function, node.name)
                line = min([node.lineno, *(item.lineno for item in node.decorator_list)])
            assert node.end_lineno is not None and node.end_col_offset is not None
            where = (node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)
            mark = Mark(MarkKind(kind), *where, function, line, Event.WAIT)
            marks.append(PlannedMark(len(marks), text, str(path), module or path.stem, mark, unit))
            found += 1
        assert found, f"no {kind} {text!r} in {path}"
    return Plan(tuple(marks), {str(path): hashlib.sha256(source).hexdigest()})


def _places(node: ast.AST, function: str, line: int):
    for child in ast.iter_child_nodes(node):
        if hasattr(child, "lineno"):
            yield child, function, line
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([child.lineno, *(item.lineno for item in child.decorator_list)])
            yield from _places(child, _dotted(function, child.name), first)
        elif isinstance(child, ast.ClassDef):
            yield from _places(child, _dotted(function, child.name), line)
        else:
            yield from _places(child, function, line)


def _text(lines: list[bytes], node: ast.AST) -> str:
    where = lines[node.lineno - 1 : node.end_lineno]  # type: ignore[attr-defined]
    where[-1] = where[-1][: node.end_col_offset]  # type: ignore[attr-defined]
    where[0] = where[0][node.col_offset :]  # type: ignore[attr-defined]
    return b"".join(where).decode()


def _dotted(function: str, name: str) -> str:
    return name if function == "<module>" else f"{function}.{name}"


def _fits(node: ast.AST, kind: str) -> bool:
    kinds = {
        "call": ast.Call,
        "statement": ast.stmt | ast.expr,
        "loop": ast.For | ast.While | ast.AsyncFor,
        "function": ast.FunctionDef | ast.AsyncFunctionDef,
    }
    return isinstance(node, kinds[kind]) and not (kind == "statement" and isinstance(node, ast.Expr))


def _same(node: ast.AST, mark: Mark) -> bool:
    return (node.lineno, node.col_offset) == (mark.line, mark.column) and (  # type: ignore[attr-defined]
        node.end_lineno == mark.end_line and node.end_col_offset == mark.end_column  # type: ignore[attr-defined]
    )


def counts(process: ProcessSession) -> dict[str, int]:
    """Completed executions by source text."""
    found: dict[str, int] = {planned.finding: 0 for planned in process.marks}
    for mark, opens in zip(process.records.mark, process.records.opens, strict=True):
        if opens:
            found[process.marks[mark].finding] += 1
    return found


def milliseconds(process: ProcessSession) -> dict[str, float]:
    """Time inside each mark by source text; nested executions of the same mark count twice."""
    found: dict[str, float] = {planned.finding: 0.0 for planned in process.marks}
    stacks: dict[int, list[tuple[int, int]]] = {}
    records = process.records
    for now, thread, mark, opens in zip(records.time_ns, records.thread, records.mark, records.opens, strict=True):
        stack = stacks.setdefault(thread, [])
        if opens:
            stack.append((mark, now))
        else:
            opened, began = stack.pop()
            assert opened == mark, "marks of one thread are not nested"
            found[process.marks[mark].finding] += (now - began) / 1e6
    return found


@functools.cache
def pythons() -> dict[str, str]:
    """Interpreters to run programs with, by version: this one, and what else is installed from 3.9 on."""
    found = {f"{sys.version_info[0]}.{sys.version_info[1]}": sys.executable}
    candidates = [Path(folder) / f"python3.{minor}" for folder in os.get_exec_path() for minor in range(9, 16)]
    candidates += sorted(Path.home().glob(".pyenv/versions/3.*/bin/python"))
    for candidate in candidates:
        if not candidate.exists():
            continue
        ask = [str(candidate), "-c", "import sys; print('%d.%d' % sys.version_info[:2])"]
        done = subprocess.run(ask, capture_output=True, text=True, check=False)
        version = done.stdout.strip()
        if done.returncode == 0 and tuple(map(int, version.split("."))) >= (3, 9):
            found.setdefault(version, str(candidate))
    return dict(sorted(found.items(), key=lambda entry: int(entry[0].split(".")[1])))
