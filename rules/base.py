"""What a rule is: one class that holds its text, its predicate on the semantic model and its rewrite.

A rule sees ``ast`` nodes through a :class:`~awp_lint.detector.semantics.view.FunctionView` and yields candidates;
where it has a rewrite, the engine parses the definition with LibCST and asks the rule to match the concrete syntax and
to hand over edits. LibCST is imported inside the methods that use it, never at module level: listing and explaining
rules must stay instant.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, Related, RootCause
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

Node = ast.expr | ast.stmt


@dataclass(frozen=True, slots=True)
class Candidate:
    """What a rule's predicate found.

    ``node`` is what the finding points at and what its fingerprint is made of (compound statements count by their
    header). ``message`` says what happens and how often, ``action`` the one thing to do; both name the user's
    variables. ``covers`` are the nodes that this finding explains as well, for precedence between rules. ``data`` is
    the rule's own, for its rewrite.
    """

    node: Node
    message: str
    action: str
    confidence: Confidence
    frequency: Frequency
    why: tuple[str, ...] = ()
    lines: tuple[ast.stmt, ast.stmt] | None = None  # first and last statement of a pattern; its mark covers them all
    mark: MarkKind | None = None  # None: the rule's own kind
    covers: tuple[ast.AST, ...] = ()
    related: tuple[Related, ...] = ()
    data: object = None


class Rule:
    """Base of all rules. A concrete rule sets every class attribute below that has no value here.

    ``confidence`` caps what its findings get; ``cost_us`` is the base cost of one execution in microseconds (a data
    number that orders findings no run has priced); ``words`` are the byte strings of which a file must hold at least
    one; ``over`` names the rules whose findings on the same place it absorbs. ``anywhere``: it finds something in
    set-up code too, or is surer than low where nothing is known of the frequency; other rules are not asked there.
    ``repeated``: what it finds, low confidence aside, runs more often than once a request, by itself or in a loop;
    ``doubted``: it is never surer than :func:`~awp_lint.rules.common.sureness`. Where low confidence is not wanted, it
    is not asked about definitions of which neither can be true.
    ``telling`` is what such a definition's text holds besides one of the words, where they alone are too common.
    ``calls``: of ``ast.Call`` nodes it is asked about those alone whose last name (``item`` of ``x.item()``, what was
    imported where it got another name) is one of these; None for all of them. ``tolerance``: by how much results of
    rewritten code may differ, in units in the last place of a result's largest value; 0 for the same bits. ``manual``:
    its rewrite is for so few spellings that under a tenth of its findings get one.
    """

    id: ClassVar[str]
    name: ClassVar[str]
    root_cause: ClassVar[RootCause]
    confidence: ClassVar[Confidence] = Confidence.HIGH
    cost_us: ClassVar[float]
    event: ClassVar[Event]
    mark: ClassVar[MarkKind] = MarkKind.STATEMENT
    words: ClassVar[tuple[bytes, ...]]
    nodes: ClassVar[tuple[type[ast.AST], ...]]
    calls: ClassVar[frozenset[str] | None] = None
    over: ClassVar[tuple[str, ...]] = ()
    anywhere: ClassVar[bool] = False
    telling: ClassVar[re.Pattern[str] | None] = None
    repeated: ClassVar[bool] = False
    doubted: ClassVar[bool] = False

    summary: ClassVar[str]  # one line, no full stop
    what: ClassVar[str]
    why: ClassVar[str]
    fine: ClassVar[str]
    safety: ClassVar[str]
    tolerance: ClassVar[int] = 0
    manual: ClassVar[bool] = False
    references: ClassVar[tuple[str, ...]]
    bad: ClassVar[str]
    good: ClassVar[str]

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        """Whether the definition can hold a finding at all: the quick answer, asked once before any of its nodes."""
        return True

    def convinced(self, view: FunctionView, file: FileView) -> bool:
        """Whether it may be surer than low of anything in the definition; asked once where low is not wanted."""
        return True

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        """The candidates at a node of one of the types in ``nodes``."""
        raise NotImplementedError

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        """The rewrite of a candidate, or None where the code is not understood well enough.

        Overridden by rules that have one; the others need no LibCST.
        """
        return None

    @classmethod
    def asked_about(cls) -> frozenset[str] | None:
        """``calls``, where it belongs to the class's own ``candidates`` and not to those of a base that it replaces."""
        for base in cls.__mro__:
            if "calls" in vars(base) or "candidates" in vars(base):
                return vars(base).get("calls")
        return None

    @classmethod
    def rewrites(cls) -> bool:
        """Whether the class has a rewrite of its own."""
        return cls.rewrite is not Rule.rewrite
