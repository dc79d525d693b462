"""What a model gets to see of a finding: the function it lies in, masked, and what our own analysis says."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from awp_lint.detector.advice.masking import Masked, Masker, Unreadable, quiet
from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Finding
from awp_lint.detector.project.reading import ReadFile
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.view import FunctionView

MAX_LINES = 300  # of a function; more would cost more than it explains


@dataclass(frozen=True)
class Subject:
    """A finding and its function. ``first`` … ``last`` are the lines (from 1) of the code that is shown."""

    finding: Finding
    source: Source
    masked: Masked
    first: int
    last: int
    node: ast.FunctionDef | ast.AsyncFunctionDef | None  # None at a module's top level
    view: FunctionView

    @property
    def code(self) -> dict[int, str]:
        """The shown lines by number."""
        return {number: self.masked.lines[number - 1] for number in range(self.first, self.last + 1)}

    @property
    def imports(self) -> list[str]:
        """The file's imports at top level, as code."""
        tree = ast.parse(self.source.text)
        return [ast.unparse(node) for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)][:40]

    def described(self) -> dict[str, object]:
        """The finding in words, as JSON-ready data; nothing of the code but names and plain words."""
        finding = self.finding
        return {
            "rule": finding.rule,
            "name": finding.name,
            "line": finding.span.line,
            "end_line": finding.span.end_line,
            "function": finding.function,
            "message": quiet(finding.message),
            "why": [quiet(reason) for reason in finding.why],
            "frequency": finding.frequency,
            "reached_through": [frame.function for frame in finding.chain],
            "confidence": finding.confidence.value,
        }


class Subjects:
    """Makes subjects; each file is looked at once."""

    def __init__(self, paths: Sequence[str], settings: Settings, read: Callable[[str], Source]) -> None:
        self._paths = paths
        self._settings = settings
        self._read = read
        self._files: list[ReadFile] | None = None
        self._views: dict[str, list[FunctionView]] = {}
        self._maskers: dict[str, Masker] = {}

    def of(self, finding: Finding) -> Subject | str:
        """The subject, or why there is none in words."""
        if finding.cell is not None or not finding.path.endswith(".py"):
            return "not a Python module"
        view = next((v for v in self._views_of(finding.path) if _holds(v, finding)), None)
        if view is None or isinstance(view.node, ast.Lambda):
            return "its function was not found"
        try:
            source = self._read(finding.path)
            masked = self._maskers.setdefault(finding.path, Masker(source)).masked
        except (Unreadable, OSError, ValueError) as error:
            return str(error)
        if isinstance(view.node, ast.Module):
            total = len(masked.lines)
            line = min(finding.span.line, total)
            return Subject(finding, source, masked, max(1, line - 40), min(total, line + 20), None, view)
        first = min([view.node.lineno, *(d.lineno for d in view.node.decorator_list)])
        last = view.node.end_lineno or first
        if last - first >= MAX_LINES:
            return f"its function has more than {MAX_LINES} lines"
        return Subject(finding, source, masked, first, last, view.node, view)

    def _views_of(self, path: str) -> Iterable[FunctionView]:
        if path not in self._views:
            # The linked part of a project: as for step-loop patches.
            import os

            from awp_lint.detector.project.files import find_files
            from awp_lint.detector.project.reading import read_all
            from awp_lint.patches.steploop.project import load

            if self._files is None:
                found, _ = find_files(self._paths, self._settings, os.getcwd())
                self._files = read_all(found)[0]
            part = load(path, self._files, self._settings)
            self._views[path] = [] if part is None else list(part.parts[path].model.functions())
        return self._views[path]


def _holds(view: FunctionView, finding: Finding) -> bool:
    if view.qualname != finding.function:
        return False
    if isinstance(view.node, ast.Module):
        return True
    first = min([view.node.lineno, *(d.lineno for d in getattr(view.node, "decorator_list", ()))])
    last: int = view.node.end_lineno or first
    return bool(first <= finding.span.line <= last)
