"""Facts of functions and classes while a file is walked: what is known so far."""

from __future__ import annotations

import ast
import sys
from typing import TYPE_CHECKING

from awp_lint.detector.semantics.conditions import State, ruled_out
from awp_lint.detector.semantics.facts import BranchFact, CallFact, LoopFact, Ref
from awp_lint.detector.semantics.switches import EITHER
from awp_lint.detector.semantics.view import Region

if TYPE_CHECKING:
    from awp_lint.detector.semantics.repeating import Repeated


class FunctionDraft:
    """A function under construction. ``env`` says what its local names refer to at the moment."""

    __slots__ = (
        "annotations", "awp", "binding", "body", "branches", "calls", "closed", "cls", "cut", "decorators",
        "defaults", "env", "filled", "flags", "guarded", "handed", "header", "index", "kind", "line", "loop_end",
        "loops", "node", "outer", "parameters", "properties", "qualname", "region", "repeated", "replaced", "rest",
        "returns", "routes", "scope", "solid", "stored", "tensors", "unsure", "vague", "when", "writes",
    )  # fmt: skip

    def __init__(self, index: int, qualname: str, outer: FunctionDraft | None, cls: int) -> None:
        self.index = index
        self.qualname = qualname
        self.repeated: Repeated | None = None  # what says all this, where another function reads the same
        self.outer = outer
        self.cls = cls
        self.kind = "function"
        self.node: ast.AST | None = None
        self.binding = ""
        self.line = 1
        self.header = (1, 1)
        self.body = (0, 0, 0)
        self.region = Region.NONE
        self.decorators: list[Ref] = []
        self.routes: list[str] = []
        self.parameters: tuple[str, ...] = ()
        self.rest = ""  # the parameter that takes all other names, while nothing was put there
        self.closed = False  # takes no other names
        self.annotations: list[tuple[str, Ref]] = []
        self.tensors = False  # a parameter is annotated as a tensor of torch
        self.returns: list[Ref] = []
        self.calls: list[CallFact] = []
        self.cut: frozenset[tuple[int, int]] = frozenset()  # calls of whose result the last position alone is used
        self.properties: dict[str, tuple[tuple[str, ...], int, int]] = {}
        self.writes: dict[str, None] = {}
        self.loops: list[LoopFact] = []
        self.awp = ""
        self.env: dict[str, Ref] = {}
        self.scope = qualname + "." if index else ""
        self.defaults: list[tuple[str, str]] = []
        self.branches: list[tuple[BranchFact, int]] = []  # with the last line of the loops around the test, 0
        self.when: tuple[int, ...] = ()  # the branches that the walk is in, by their numbers
        self.loop_end = 0  # last line of the outermost loop that the walk is in
        self.stored: dict[str, int] = {}  # parameter → first line that binds it anew
        self.replaced: dict[str, int] = {}  # the same, but what only replaces a value that is not None
        self.handed: frozenset[str] = frozenset()  # names that the value being bound was made of as its likes
        self.flags: dict[str, State | None] = {}  # local names that only switches make true; None: not known
        self.filled: set[str] = set()  # parameters that are bound anew only where they are None
        self.solid: set[str] = set()  # local names that were bound to what is never None
        self.vague: set[str] = set()  # local names that were bound to what may be None
        self.guarded: list[tuple[int, tuple[int, ...]]] = []  # calls by their numbers, with the branches they stand in
        self.unsure: list[tuple[int, int]] = []  # calls in loops by their numbers, with the last line of those loops

    def add(self, call: CallFact) -> None:
        """Note a call where the walk is."""
        if self.when:
            self.guarded.append((len(self.calls), self.when))
        if self.loop_end and any("=" in code or "~" in code for code in call.passed):
            self.unsure.append((len(self.calls), self.loop_end))
        self.calls.append(call)

    def store(self, name: str, line: int) -> None:
        """Note that a statement binds a parameter anew."""
        if name not in self.parameters:
            return
        if name not in self.stored and any(b[:2] == (name, "none") for b in self.holding()):
            self.filled.add(name)
        else:
            self.filled.discard(name)
        kept = name in self.handed or any(b.parameter == name and b.state in ("given", "true") for b in self.holding())
        (self.replaced if kept else self.stored).setdefault(name, line)

    def holding(self) -> list[BranchFact]:
        """The branches that the walk is in."""
        return [self.branches[number][0] for number in self.when]

    def chosen_otherwise(self) -> bool:
        """Whether the walk is in a branch that a parameter's default does not choose: ``if method == "greedy":``."""
        defaults = dict(self.defaults)
        return any(b.state[:2] == "==" and ruled_out(b.state, defaults.get(b.parameter, "")) for b in self.holding())

    def keeps(self, name: str) -> bool:
        """Whether a switch is that of the object or of the configuration that was passed."""
        if EITHER in name:
            return all(map(self.keeps, name.split(EITHER)))
        root, _, last = name.partition("|")[0].rpartition(".")
        if root == "config":
            return root in self.parameters and root not in self.stored
        return self.cls >= 0 and last not in self.writes

    def decides(self, name: str, state: str, line: int = sys.maxsize) -> bool:
        """Whether the parameter still is what the call passed, as far as the state goes, up to a line."""
        if name in self.stored and self.stored[name] <= line:
            return False
        return state in ("given", "true") or name not in self.replaced or self.replaced[name] > line


class ClassDraft:
    """A class under construction."""

    __slots__ = ("attributes", "bases", "decorators", "defaults", "line", "methods", "outer", "qualname")

    def __init__(self, qualname: str, line: int, outer: int) -> None:
        self.qualname = qualname
        self.line = line
        self.outer = outer
        self.bases: list[Ref] = []
        self.decorators: list[Ref] = []
        self.methods: list[tuple[str, int]] = []
        self.attributes: list[tuple[str, int, Ref]] = []
        self.defaults: list[tuple[str, str]] = []
