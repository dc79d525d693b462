"""The plan as the agent reads it: ``plan.json`` in the session's folder, written by the parent.

``{"options": {…}, "digests": {path: sha256}, "marks": [{index, path, module, kind, line, column, end_line, end_column,
function, function_line, unit}, …]}``. Beside it ``plan.names`` has the base names of the files that hold marks, one a
line: all that a process needs which never runs any of them.
"""

from __future__ import annotations

import os
from typing import Any, NamedTuple


class AgentMark(NamedTuple):
    """One planned mark. Lines are 1-based, columns 0-based UTF-8 bytes, as in ``co_positions``."""

    number: int
    path: str
    module: str
    kind: str
    line: int
    column: int
    end_line: int
    end_column: int
    function: str
    function_line: int
    unit: str | None


def _mark(raw: dict[str, Any]) -> AgentMark:
    values: list[Any] = [raw["index"], *(raw.get(name) for name in AgentMark._fields[1:])]
    return AgentMark(*values)


class Plan:
    """All marks, by real path."""

    def __init__(self, session: str) -> None:
        self.session = session
        with open(os.path.join(session, "plan.names"), encoding="utf-8", errors="surrogateescape") as names:
            self.names = frozenset(names.read().split("\n")) - {""}
        self.late = -1  # the number of the first mark that came while the program ran; -1 without
        self._loaded: dict[str, Any] | None = None
        self._by_path: dict[str, list[AgentMark]] = {}

    def _load(self) -> dict[str, Any]:
        if self._loaded is None:
            import json

            with open(os.path.join(self.session, "plan.json"), encoding="utf-8") as file:
                loaded = json.load(file)
            by_path: dict[str, list[AgentMark]] = {}
            for raw in loaded["marks"]:
                mark = _mark(raw)
                by_path.setdefault(os.path.realpath(mark.path), []).append(mark)
            # Put in place whole, the guard last: several threads may come here at once.
            self._by_path = by_path
            self._loaded = loaded
        return self._loaded

    def extend(self, marks: list[dict[str, Any]], digests: dict[str, str], first: int) -> None:
        """More marks, from number ``first`` on."""
        loaded = self._load()
        by_path = {path: list(held) for path, held in self._by_path.items()}
        for raw in marks:
            mark = _mark(raw)
            by_path.setdefault(os.path.realpath(mark.path), []).append(mark)
        self.names = self.names | {os.path.basename(path) for path in by_path}
        self.late = first
        self._loaded = dict(loaded, digests=dict(loaded["digests"], **digests))
        self._by_path = by_path

    @property
    def options(self) -> dict[str, Any]:
        """The run's options, see :mod:`awp_lint.detector.profiling.launch`."""
        return dict(self._load()["options"])

    def waits_for_late(self) -> bool:
        """Whether marks may come while the program runs."""
        return bool(self._load()["options"].get("late"))

    @property
    def digests(self) -> dict[str, str]:
        """sha256 of each scanned file, by the path in the plan."""
        return dict(self._load()["digests"])

    @property
    def size(self) -> int:
        """One more than the largest index that may come."""
        here = max((mark.number for marks in self.by_path.values() for mark in marks), default=-1) + 1
        return here + int(self.options.get("late") or 0)

    @property
    def roots(self) -> list[str]:
        """Real paths of the files and folders that were scanned."""
        return list(self.options.get("roots") or ())

    @property
    def counting(self) -> frozenset[int]:
        """Marks that lie where units are counted, and those that count them: one is open all the time."""
        marks = [mark for found in self.by_path.values() for mark in found]
        places = {_place(mark) for mark in marks if mark.unit}
        return frozenset(mark.number for mark in marks if _place(mark) in places)

    @property
    def by_path(self) -> dict[str, list[AgentMark]]:
        """Marks of each file, by its real path."""
        self._load()
        return self._by_path


def _place(mark: AgentMark) -> tuple[str, str, int, int]:
    return (mark.path, mark.kind, mark.line, mark.end_line)
