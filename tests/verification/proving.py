"""Findings with made-up patches for small programs, and the loop over steps in one, as the static half gives them."""

from __future__ import annotations

import ast
import sys
from pathlib import Path
from typing import Any

from awp_lint.detector.finding import (
    Confidence,
    Edit,
    Effect,
    Event,
    Finding,
    Fix,
    Mark,
    MarkKind,
    RootCause,
    Safety,
    Span,
    Verification,
)
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.prove import Proof, prove


def finding(path: Path, name: str, old: str, new: str, effects: tuple[Effect, ...] = ()) -> Finding:
    """A finding whose patch replaces ``old`` in the file."""
    text = path.read_text()
    start = text.index(old)
    line = text[:start].count("\n") + 1
    fix = Fix(f"fix {name}", Safety.SAFE, (Edit(start, start + len(old), new),), effects=effects)
    return Finding(
        id=name, rule=name, name=name.lower(), path=str(path), span=Span(line, 1, line, 2), function="f", message="m",
        why=(), root_cause=RootCause.RUNTIME, frequency="step", confidence=Confidence.HIGH, fix=fix,
    )  # fmt: skip


class Loop:
    """The first loop of a function: its iterations are units."""

    def __init__(self, path: Path, function: str = "generate", unit: str = "step") -> None:
        self.path, self.module, self.unit = str(path), path.stem, unit
        (node,) = (n for n in ast.walk(ast.parse(path.read_text())) if getattr(n, "name", "") == function)
        assert isinstance(node, ast.FunctionDef)
        loop = next(inner for inner in node.body if isinstance(inner, ast.For))
        assert loop.end_lineno and loop.end_col_offset
        self.mark = Mark(
            MarkKind.LOOP, loop.lineno, loop.col_offset, loop.end_lineno, loop.end_col_offset,
            function, node.lineno, Event.NONE,
        )  # fmt: skip


def read(path: str) -> Source:
    """A file as the scan reads it."""
    return Source.decode(path, Path(path).read_bytes())


def proven(
    findings: list[Finding], units: list[Loop], words: list[str], budget: float, wait: float = 20.0
) -> tuple[Proof, dict[str, Verification]]:
    """Prove patches in the program that ``words`` start; ``wait``: seconds for its first work."""
    options: dict[str, Any] = {"max_wait": wait}
    lines: list[str] = []
    proof = prove(findings, units, [sys.executable, *words], options, read, budget, report=lines.append)
    assert lines
    return proof, proof.by_finding
