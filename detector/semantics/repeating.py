"""The facts of functions that stand word for word where they were found before."""

from __future__ import annotations

import ast
import functools
from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from awp_lint.detector.semantics import regions
from awp_lint.detector.semantics.binding import Binding, given
from awp_lint.detector.semantics.copies import Copied, Named, Stretch
from awp_lint.detector.semantics.definition import FunctionNode
from awp_lint.detector.semantics.drafts import ClassDraft, FunctionDraft
from awp_lint.detector.semantics.facts import CallFact, FunctionFact, Ref
from awp_lint.detector.semantics.referring import Asked
from awp_lint.detector.semantics.view import Region

if TYPE_CHECKING:
    from awp_lint.detector.semantics.extract import _Extractor


class Told(NamedTuple):
    """What a function was told of the file around it."""

    libraries: Set[str]  # names that are those of libraries
    others: Set[str]  # names that are not
    roots: Mapping[str, str | None]  # what names mean as absolute imports
    methods: Mapping[str, bool]  # whether names are methods of the class
    given: Mapping[str, bool]  # whether attributes were made from a parameter before
    region: Region  # by the name of its class


@dataclass(slots=True)
class FactsCopy:
    """What a function says of itself and of its class, at the place where it was found."""

    fact: FunctionFact
    stretch: Stretch
    returns: tuple[Ref, ...]  # less that of the annotation
    properties: dict[str, tuple[tuple[str, ...], int, int]]  # all names that are read from self
    attributes: tuple[tuple[str, Ref], ...]  # of its class
    nodes: int
    told: Told
    number: int  # of the function in its file
    _own: tuple[Ref, ...] | None = None

    @property
    def body(self) -> int:
        """Where the first line of its body starts in its text, 0 where others share its lines."""
        first = self.fact.body[0]
        if not first:
            return 0
        at = -1
        for _ in range(first - self.stretch.first):
            at = self.stretch.text.index("\n", at + 1)
        return at + 1

    @property
    def indent(self) -> int:
        """How far its body is indented."""
        return self.fact.body[2]

    @property
    def own(self) -> tuple[Ref, ...]:
        """What holds its number."""
        if self._own is None:
            refs = [call.callee for call in self.fact.calls] + [*self.returns] + [ref for _, ref in self.attributes]
            self._own = tuple(dict.fromkeys(ref for ref in refs if _is_own(ref)))
        return self._own


class Walked(NamedTuple):
    """A function that has just been walked on its own: what it was told, and what it has added."""

    function: FunctionDraft
    stretch: Stretch
    method: bool
    told: Told
    attributes: tuple[tuple[str, Ref], ...]  # to its class
    declared: int  # how many of the returns are the annotation's
    nodes: int


class Repeating:
    """Takes over the facts of functions from those that read the same, while a file is walked."""

    def __init__(self, copied: Copied) -> None:
        self._copied = copied
        self._walked: list[Walked] = []

    def does(self, function: FunctionDraft, node: FunctionNode, walker: _Extractor) -> bool:
        """Walk a function's body, or take over what is known of it; False where that is none of ours."""
        if isinstance(node, ast.Lambda) or function.outer is None or function.outer.index:
            return False
        stretch = self._copied.of(node, function.cls >= 0)
        if stretch is None:
            return False
        holder = walker.classes[function.cls] if function.cls >= 0 else None
        copy = self._copied.copies.facts.get((stretch.text, holder is not None))
        if copy is not None and holds(copy.told, walker, holder):
            function.repeated = repeated = Repeated(copy, function, walker)
            walker.nodes += copy.nodes
            if holder is not None:
                holder.attributes += repeated.attributes(function.index)
        else:
            self._copied.put_back(node)
            if function.body[0]:
                function.body = (function.body[0], stretch.last, function.body[2])
            self._walk(function, node, stretch, walker)
        return True

    def _walk(self, function: FunctionDraft, node: Named, stretch: Stretch, walker: _Extractor) -> None:
        holder = walker.classes[function.cls] if function.cls >= 0 else None
        walker.asked = Asked()
        attributes = len(holder.attributes) if holder is not None else 0
        nodes, declared = walker.nodes, len(function.returns)
        held = len(walker.functions), len(walker.classes), len(walker.imports)
        walker.body(function, node)
        if held == (len(walker.functions), len(walker.classes), len(walker.imports)):
            added = () if holder is None else tuple([(name, ref) for name, _, ref in holder.attributes[attributes:]])
            answers = told(walker, holder, attributes)
            method = holder is not None
            self._walked.append(Walked(function, stretch, method, answers, added, declared, walker.nodes - nodes))

    def keep(self, functions: Sequence[FunctionFact]) -> None:
        """Remember the functions that were walked, by the facts of all."""
        for walked in self._walked:
            f, stretch = walked.function, walked.stretch
            self._copied.copies.facts[stretch.text, walked.method] = FactsCopy(
                functions[f.index], stretch, tuple(f.returns[walked.declared :]), f.properties, walked.attributes,
                walked.nodes, walked.told, f.index,
            )  # fmt: skip


def told(walker: Binding, holder: ClassDraft | None, attributes: int) -> Told:
    """The answers to what a function has asked; ``attributes``: how many its class had then."""
    asked = walker.asked
    before = given(holder, attributes) if holder is not None and asked.given else ()
    methods = {name for name, _ in holder.methods} if holder is not None and asked.methods else ()
    libraries = asked.libraries & walker.libraries
    return Told(
        libraries,
        asked.libraries - libraries,
        {name: walker.roots.get(name) for name in asked.roots},
        {name: name in methods for name in asked.methods},
        {name: name in before for name in asked.given},
        _region(holder),
    )


def _region(holder: ClassDraft | None) -> Region:
    return Region.NONE if holder is None else _region_of(holder.qualname.rpartition(".")[2])


_region_of = functools.lru_cache(maxsize=1024)(regions.class_region)


def holds(answers: Told, walker: Binding, holder: ClassDraft | None) -> bool:
    """Whether a function would be told the same here."""
    if not (answers.libraries <= walker.libraries and answers.others.isdisjoint(walker.libraries)):
        return False
    if answers.region != _region(holder):
        return False
    if any(walker.roots.get(name) != meaning for name, meaning in answers.roots.items()):
        return False
    if answers.methods:
        methods = {name for name, _ in holder.methods} if holder is not None else ()
        if any((name in methods) is not known for name, known in answers.methods.items()):
            return False
    if answers.given:
        made = given(holder) if holder is not None else ()
        return all((name in made) is known for name, known in answers.given.items())
    return True


def _is_own(ref: object) -> bool:
    """Whether a ref holds a parameter, and by that the number of the function."""
    return isinstance(ref, tuple) and (ref[0] == "p" or any(map(_is_own, ref)))


def _numbered(ref: Ref, number: int) -> Ref:
    if isinstance(ref, str):
        return ref
    if ref[0] == "p":
        return ("p", number, ref[2])
    return tuple([_numbered(part, number) if isinstance(part, tuple) else part for part in ref])


class Repeated:
    """What a copy says at another place in another file: that of ``function``, which was defined there."""

    def __init__(self, copy: FactsCopy, function: FunctionDraft, walker: Binding) -> None:
        self._copy = copy
        self._refs: dict[Ref, Ref] = {}
        if function.index != copy.number:
            self._refs = {ref: walker.intern(_numbered(ref, function.index)) for ref in copy.own}

    def attributes(self, number: int) -> list[tuple[str, int, Ref]]:
        """What is added to those of the class, by the function with this number."""
        refs = self._refs
        return [(name, number, refs.get(ref, ref)) for name, ref in self._copy.attributes]

    def fact(self, f: FunctionDraft, property_names: set[str]) -> FunctionFact:
        """The function's facts, where the names in ``property_names`` are properties."""
        copy, refs = self._copy, self._refs
        old = copy.fact
        d = f.line - old.line
        calls = tuple([CallFact(c[0] + d, c[1], refs.get(c[2], c[2]), *c[3:]) for c in old.calls])
        loops = tuple([loop._replace(line=loop.line + d, end_line=loop.end_line + d) for loop in old.loops])
        branches = tuple([b._replace(line=b.line + d, end_line=b.end_line + d) for b in old.branches])
        first, last, indent = old.body
        returns = tuple(dict.fromkeys([*f.returns, *[refs.get(ref, ref) for ref in copy.returns]]))
        properties = tuple(
            [
                (name, loops, line + d, guard)
                for name, (loops, line, guard) in copy.properties.items()
                if name in property_names
            ]
        )
        return FunctionFact(
            f.qualname, f.line, f.header, (first + d, last + d, indent) if first else old.body, f.cls, 0, f.kind,
            f.binding, old.regions, tuple(f.decorators), tuple(f.routes), f.parameters, tuple(f.annotations), returns,
            calls, properties, old.writes, loops, f.awp, tuple(f.defaults), branches, f.closed, f.tensors,
        )  # fmt: skip
