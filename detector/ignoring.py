"""Comments that silence findings, written for a project that keeps its reasons in the code."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterable

from awp_lint.detector.finding import Edit, Finding
from awp_lint.detector.project.source import Source


def ignore_edits(source: Source, findings: Iterable[Finding], reason: str) -> tuple[Edit, ...]:
    """A comment line above the statement of each finding, one for all findings of a statement.

    Raises :class:`SyntaxError` for a source that cannot be parsed.
    """
    starts = _statement_starts(ast.parse(source.text))
    ids: dict[int, set[str]] = defaultdict(set)
    for finding in findings:
        # The innermost statement that begins at or above the finding: statements are listed outermost first.
        line = next(
            (first for first, last in reversed(starts) if first <= finding.span.line <= last), finding.span.line
        )
        ids[line].add(finding.rule)
    words = " ".join(reason.split())
    edits = []
    for line, rules in sorted(ids.items()):
        text = source.line_text(line)
        indent = text[: len(text) - len(text.lstrip())]
        start = source.line_starts[line - 1]
        comment = f"{indent}# awp: ignore[{', '.join(sorted(rules))}] {words}{source.newline}"
        edits.append(Edit(start, start, comment))
    return tuple(edits)


def _statement_starts(tree: ast.Module) -> list[tuple[int, int]]:
    """First and last line of every statement that begins a line of its own, outer ones before inner ones."""
    found: list[tuple[int, int]] = []
    todo: list[ast.AST] = [tree]
    while todo:
        node = todo.pop()
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.stmt):
                decorators = [d.lineno for d in getattr(child, "decorator_list", ())]
                found.append((min([child.lineno, *decorators]), child.end_lineno or child.lineno))
        todo.extend(ast.iter_child_nodes(node))
    return sorted(found, key=lambda lines: (lines[0], -lines[1]))
