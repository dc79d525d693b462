"""Facts of functions and classes while a file is walked: what is known so far."""

from __future__ import annotations

from awp_lint.detector.semantics.facts import CallFact, LoopFact, Ref
from awp_lint.detector.semantics.view import Region


class FunctionDraft:
    """A function under construction. ``env`` says what its local names refer to at the moment."""

    __slots__ = (
        "annotations", "awp", "binding", "body", "calls", "cls", "decorators", "env", "header", "index", "kind", "line",
        "loops", "outer", "parameters", "properties", "qualname", "region", "returns", "routes", "scope", "writes",
    )  # fmt: skip

    def __init__(self, index: int, qualname: str, outer: FunctionDraft | None, cls: int) -> None:
        self.index = index
        self.qualname = qualname
        self.outer = outer
        self.cls = cls
        self.kind = "function"
        self.binding = ""
        self.line = 1
        self.header = (1, 1)
        self.body = (0, 0, 0)
        self.region = Region.NONE
        self.decorators: list[Ref] = []
        self.routes: list[str] = []
        self.parameters: tuple[str, ...] = ()
        self.annotations: list[tuple[str, Ref]] = []
        self.returns: list[Ref] = []
        self.calls: list[CallFact] = []
        self.properties: dict[str, tuple[tuple[str, ...], int, int]] = {}
        self.writes: dict[str, None] = {}
        self.loops: list[LoopFact] = []
        self.awp = ""
        self.env: dict[str, Ref] = {}
        self.scope = qualname + "." if index else ""


class ClassDraft:
    """A class under construction."""

    __slots__ = ("attributes", "bases", "decorators", "line", "methods", "outer", "qualname")

    def __init__(self, qualname: str, line: int, outer: int) -> None:
        self.qualname = qualname
        self.line = line
        self.outer = outer
        self.bases: list[Ref] = []
        self.decorators: list[Ref] = []
        self.methods: list[tuple[str, int]] = []
        self.attributes: list[tuple[str, int, Ref]] = []
