"""The whole project, linked: what one file's model may ask of all the others.

:class:`Linked` answers both halves of :class:`~awp_lint.detector.semantics.outside.Outside` and, beyond it, how often a
function is entered and what a call reaches. :class:`Recorder` notes what one file asked, so that its findings can be
reused as long as the answers stay the same.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics import paths
from awp_lint.detector.semantics.callgraph import CallGraph
from awp_lint.detector.semantics.frequency import Frequencies
from awp_lint.detector.semantics.index import Index, IndexedFile
from awp_lint.detector.semantics.outside import Outside
from awp_lint.detector.semantics.summaries import FileValues, link_values
from awp_lint.detector.semantics.values import Value
from awp_lint.detector.semantics.view import Frequency


class Entered(NamedTuple):
    """How often a function is entered; ``cold``: set-up code, in which loops do not count."""

    frequency: Frequency
    cold: bool


class ProjectView(Outside, Protocol):
    """What the model of one file asks."""

    def entered(self, module: str, qualname: str, line: int) -> Entered:
        """How often the function is entered whose first line (decorators included) this is."""

    def reached(self, module: str, qualname: str, line: int, call: tuple[int, int]) -> tuple[str, ...]:
        """Dotted names of the project's functions that the call at (line, UTF-8 column) in that function may run."""


_NOWHERE = Entered(paths.UNKNOWN, False)
_MAX_REACHED = 16


class Linked:
    """All files together. Answers do not depend on the order of files or questions."""

    def __init__(self, files: Sequence[IndexedFile], values: Iterable[FileValues], settings: Settings) -> None:
        self.index = Index(files)
        self.graph = CallGraph(self.index)
        self.frequencies = Frequencies(self.graph, settings.entry_points)
        self._functions = {
            (self.index.files[self.index.function_file[gid]].module, function.qualname, function.line): gid
            for gid, function in reversed(list(enumerate(self.index.functions)))
        }
        self._callers: dict[int, set[int]] | None = None
        self._values = link_values(values, self, target=settings.target)

    # names and classes ---------------------------------------------------------------------------------------------

    def canonical(self, dotted: str) -> str:
        return self.index.dotted_of(self.index.lookup(dotted))

    def is_function(self, dotted: str) -> bool:
        return self.index.lookup(dotted).kind == "function"

    def is_class(self, dotted: str) -> bool:
        return self.index.lookup(dotted).kind == "class"

    def bases(self, cls: str) -> frozenset[str]:
        entity = self.index.lookup(cls)
        return self.index.base_names(entity.number) if entity.kind == "class" else frozenset((cls,))

    def method(self, cls: str, name: str) -> str | None:
        entity = self.index.lookup(cls)
        gid = self.index.method(entity.number, name) if entity.kind == "class" else None
        return None if gid is None else self.index.qualified_function[gid]

    def calling_modules(self, function: str) -> frozenset[str]:
        """Modules that hold calls which may run the function."""
        if self._callers is None:
            self._callers = self.graph.calling_files()
        gid = self.index.by_function.get(function)
        files = self._callers.get(gid, ()) if gid is not None else ()
        return frozenset(self.index.files[number].module for number in files)

    # values --------------------------------------------------------------------------------------------------------

    def returns(self, function: str) -> Value | None:
        return self._values.returns(function)

    def attribute(self, cls: str, name: str) -> Value | None:
        return self._values.attribute(cls, name)

    def parameter(self, function: str, name: str) -> Value | None:
        return self._values.parameter(function, name)

    def global_value(self, dotted: str) -> Value | None:
        return self._values.global_value(dotted)

    # calls ---------------------------------------------------------------------------------------------------------

    def entered(self, module: str, qualname: str, line: int) -> Entered:
        gid = self._functions.get((module, qualname, line))
        return _NOWHERE if gid is None else Entered(self.frequencies.frequency(gid), self.frequencies.is_cold(gid))

    def reached(self, module: str, qualname: str, line: int, call: tuple[int, int]) -> tuple[str, ...]:
        gid = self._functions.get((module, qualname, line))
        nodes = self.graph.targets.get((gid, *call), ()) if gid is not None else ()
        found = {f for node in nodes for f in self.graph.functions_of(node)}
        if len(found) > _MAX_REACHED:  # a call that may reach anything tells nothing
            return ()
        return tuple(sorted(self.index.qualified_function[f] for f in found))

    def heats(self, module: str, qualname: str, line: int) -> bool:
        """Whether the function is known and neither test, benchmark, training nor set-up code."""
        gid = self._functions.get((module, qualname, line))
        return gid is not None and not self.frequencies.is_cold(gid) and self.frequencies.heats(gid)


Question = tuple[str, tuple[object, ...]]


class Recorder:
    """A :class:`ProjectView` that remembers what it was asked."""

    def __init__(self, project: ProjectView) -> None:
        self._project = project
        self.asked: dict[Question, None] = {}

    def canonical(self, dotted: str) -> str:
        self.asked["canonical", (dotted,)] = None
        return self._project.canonical(dotted)

    def is_function(self, dotted: str) -> bool:
        self.asked["is_function", (dotted,)] = None
        return self._project.is_function(dotted)

    def is_class(self, dotted: str) -> bool:
        self.asked["is_class", (dotted,)] = None
        return self._project.is_class(dotted)

    def bases(self, cls: str) -> frozenset[str]:
        self.asked["bases", (cls,)] = None
        return self._project.bases(cls)

    def method(self, cls: str, name: str) -> str | None:
        self.asked["method", (cls, name)] = None
        return self._project.method(cls, name)

    def returns(self, function: str) -> Value | None:
        self.asked["returns", (function,)] = None
        return self._project.returns(function)

    def attribute(self, cls: str, name: str) -> Value | None:
        self.asked["attribute", (cls, name)] = None
        return self._project.attribute(cls, name)

    def parameter(self, function: str, name: str) -> Value | None:
        self.asked["parameter", (function, name)] = None
        return self._project.parameter(function, name)

    def global_value(self, dotted: str) -> Value | None:
        self.asked["global_value", (dotted,)] = None
        return self._project.global_value(dotted)

    def entered(self, module: str, qualname: str, line: int) -> Entered:
        self.asked["entered", (module, qualname, line)] = None
        return self._project.entered(module, qualname, line)

    def reached(self, module: str, qualname: str, line: int, call: tuple[int, int]) -> tuple[str, ...]:
        self.asked["reached", (module, qualname, line, call)] = None
        return self._project.reached(module, qualname, line, call)


class Answers:
    """Digests of a project's answers, each computed once."""

    def __init__(self, project: ProjectView) -> None:
        self._project = project
        self._known: dict[Question, bytes] = {}

    def digest(self, questions: Iterable[Question]) -> bytes:
        """One digest of all answers, in the order of the questions."""
        total = hashlib.blake2b(digest_size=16)
        for question in questions:
            known = self._known.get(question)
            if known is None:
                name, arguments = question
                answer = getattr(self._project, name)(*arguments)
                if isinstance(answer, frozenset):
                    answer = sorted(answer)
                known = self._known[question] = hashlib.blake2b(repr(answer).encode(), digest_size=16).digest()
            total.update(known)
        return total.digest()
