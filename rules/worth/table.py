"""What a doubt is: one kind of finding that is right and not worth a reviewer's time, and how it is told.

A doubt is a function that is asked about a case; :func:`doubt` says of which rules. Its name is the kind, the first
line of its docstring the reason.
"""

from __future__ import annotations

import ast
import functools
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level
from awp_lint.rules.base import Candidate

#: Walks over a model's parts, which a loop over them would be, too: slower than a kernel. By themselves or in a helper.
_WALKS = re.compile(r"\b(named_)?(modules|parameters|buffers|children)\(")
_TOLD_WALKS = re.compile(r" walks through all modules of ")


@dataclass(frozen=True, slots=True)
class Case:
    """A candidate of a rule, where it stands."""

    rule: str
    candidate: Candidate
    view: FunctionView
    file: FileView

    @property
    def node(self) -> ast.expr | ast.stmt:
        return self.candidate.node

    @property
    def frequency(self) -> Frequency:
        return self.candidate.frequency

    @property
    def path(self) -> tuple[Level, ...]:
        return self.candidate.frequency.path

    @property
    def weighs_by_frequency(self) -> bool:
        """Whether how often it runs says what it costs: it is known, and it is no walk over a model's parts."""
        if not self.frequency.known or not self.path:
            return False
        walks = self.rule == "AWP306" and (
            _TOLD_WALKS.search(self.candidate.message) or _WALKS.search(ast.unparse(self.node))
        )
        return not walks


@dataclass(frozen=True, slots=True)
class Doubt:
    """A kind of finding that is hidden by default. ``rules``: whose findings, all of an id; ``seldom``: it is told from
    how often the finding runs, where that is known."""

    holds: Callable[[Case], bool]
    rules: re.Pattern[str]
    seldom: bool

    @property
    def name(self) -> str:
        return self.holds.__name__

    @property
    def reason(self) -> str:
        """Why such a finding is not worth a reviewer's time, in one line."""
        return (self.holds.__doc__ or "").strip().partition("\n")[0]


def doubt(rules: str = r"AWP\d+", seldom: bool = False) -> Callable[[Callable[[Case], bool]], Doubt]:
    """Makes a doubt of a function."""
    return lambda holds: Doubt(holds, re.compile(rules), seldom)


class Table:
    """The doubts in their order: the first that holds decides."""

    def __init__(self, doubts: Iterable[Doubt]) -> None:
        self.doubts = tuple(doubts)
        self._about = functools.cache(self._chosen)

    def _chosen(self, rule: str) -> tuple[Doubt, ...]:
        return tuple(item for item in self.doubts if item.rules.fullmatch(rule))

    def first(self, case: Case) -> Doubt | None:
        """The doubt that holds of a case, if one does."""
        weighs: bool | None = None
        for item in self._about(case.rule):
            if item.seldom:
                weighs = case.weighs_by_frequency if weighs is None else weighs
                if not weighs:
                    continue
            if item.holds(case):
                return item
        return None
