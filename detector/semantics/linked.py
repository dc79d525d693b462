"""The whole project, linked: what one file's model may ask of all the others.

:class:`Linked` answers both halves of :class:`~awp_lint.detector.semantics.outside.Outside` and, for a function by its
file and number, how often it is entered and what its calls reach. Positions are functions and numbers of calls, not
lines, so that an answer stays right when lines move.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics.callgraph import CallGraph
from awp_lint.detector.semantics.facts import GUARD_LAST, GUARD_OFF, GUARD_REFERENCE, CallFact, function_names
from awp_lint.detector.semantics.frequency import Frequencies, Reach
from awp_lint.detector.semantics.index import Index, IndexedFile
from awp_lint.detector.semantics.spare import is_spare
from awp_lint.detector.semantics.summaries import FileValues, link_values
from awp_lint.detector.semantics.values import Certainty, Value
from awp_lint.detector.semantics.view import Level, Region

_MAX_REACHED = 16


class Place(NamedTuple):
    """A call in a file: the function by its qualified name (which one of those that share it), and the call's number as
    edges of the call graph count."""

    path: str
    function: str
    which: int
    call: int


class Entry(NamedTuple):
    """How often a function is entered. ``cold``: set-up code, in which loops do not count; ``heats``: neither test,
    benchmark nor training; ``places`` and ``origin`` (library, function) are the calls that lead there."""

    path: tuple[Level, ...] = ()
    certainty: Certainty = Certainty.UNKNOWN
    cold: bool = False
    heats: bool = True
    origin: tuple[tuple[str, str], ...] = ()
    places: tuple[Place, ...] = ()


class Linked:
    """All files together. Answers do not depend on the order of files or questions."""

    def __init__(self, files: Sequence[IndexedFile], values: Iterable[FileValues], settings: Settings) -> None:
        self.index = Index(files)
        self.graph = CallGraph(self.index)
        self.frequencies = Frequencies(self.graph, settings.entry_points)
        self._numbers = {file.path: number for number, file in enumerate(self.index.files)}
        self._callers: dict[int, set[int]] | None = None
        self._spoken: dict[str, bool] = {}
        self._texts: frozenset[str] | None = None
        self._names: dict[int, list[tuple[str, int]]] = {}
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

    def defaults(self, path: str, field: str) -> tuple[str, ...]:
        """The texts of what the configuration classes give a field that a file imports or defines."""
        return self.graph.switches.defaults(self._numbers[path], field)

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

    def entry(self, path: str, function: int) -> Entry:
        """How often a file's function, by its number, is entered."""
        number = self._numbers[path]
        gid = self.index.first_function[number] + function
        heats = self.frequencies.heats(gid)
        reach = self.frequencies.reach[gid]
        if reach is None:
            return Entry(heats=heats)
        return self._entry(gid, reach, heats)

    def _entry(self, node: int, reach: Reach, heats: bool) -> Entry:
        places = tuple(self._place(*call) for call in self.frequencies.calls_to(node))
        return Entry(reach.path, reach.certainty, reach.cold, heats, self.frequencies.came_from(node), places)

    def parts(self, path: str, function: int) -> tuple[tuple[str, str, Entry | None], ...]:
        """The parts of a file's function that not every call makes run: the parameter, the state it must be in, and how
        often it then is entered; None where no call makes the part run."""
        gid = self.index.first_function[self._numbers[path]] + function
        whole = self.frequencies.reach[gid]
        if whole is None:
            return ()
        found: list[tuple[str, str, Entry | None]] = []
        for _, parameter, state in dict.fromkeys((gid, *branch[:2]) for branch in self.index.functions[gid].branches):
            node = self.graph.gates.nodes.get((gid, parameter, state))
            if node is None:
                continue
            reach = self.frequencies.reach[node]
            if reach is None:
                found.append((parameter, state, None))
            elif self.frequencies.caller[node] != self.frequencies.caller[gid] or reach != whole:
                found.append((parameter, state, self._entry(node, reach, self.frequencies.heats(gid))))
        return tuple(found)

    def callers(self, path: str, function: int) -> tuple[int, bool, bool]:
        """Who calls a file's function, by its number: see :class:`~awp_lint.detector.semantics.view.Callers`."""
        gid = self.index.first_function[self._numbers[path]] + function
        direct = self.graph.callers(gid)
        last = bool(direct) and all(guard & GUARD_LAST and not guard & GUARD_REFERENCE for _, guard in direct)
        seen = {gid}
        waiting = [gid]
        while waiting:
            for caller, guard in self.graph.callers(waiting.pop()):
                if guard & GUARD_OFF or Region(self.index.functions[caller].regions) & Region.INFERENCE:
                    return len(direct), last, True
                if caller not in seen:
                    seen.add(caller)
                    waiting.append(caller)
        return len(direct), last, False

    def switches_off(self, function: str) -> bool:
        """Whether the function of this dotted name switches gradients off for what it does, or for some of it."""
        gid = self.index.by_function.get(function)
        if gid is None:
            return False
        fact = self.index.functions[gid]
        return bool(Region(fact.regions) & Region.INFERENCE) or any(call.guard & GUARD_OFF for call in fact.calls)

    def speaks_of(self, word: str) -> bool:
        """Whether a function, an import, a call or an argument of one anywhere in the project has the word in its
        name."""

        def calls(call: CallFact) -> bool:
            return word in str(call.callee) or any(word in passed for passed in call.passed)

        known = self._spoken.get(word)
        if known is None:
            known = self._spoken[word] = any(
                any(word in (fact.name or fact.module) for fact in file.facts.imports)
                or any(word in f.qualname or any(map(calls, f.calls)) for f in file.facts.functions)
                for file in self.index.files
            )
        return known

    def says(self, text: str) -> bool:
        """Whether a default, an argument of a call or a field of a configuration of the project is this text."""
        if self._texts is None:
            self._texts = frozenset(self._said())
        return repr(text) in self._texts

    def _said(self) -> Iterator[str]:
        """All texts, as Python writes them."""
        for file in self.index.files:
            for function in file.facts.functions:
                yield from (code[1:] for _, code in function.defaults)
                yield from (entry.rpartition("=#")[2].lstrip("#") for call in function.calls for entry in call.passed)
            for cls in file.facts.classes:
                yield from (code for _, code in cls.defaults)

    def is_spare(self, path: str, cls: str) -> bool:
        """Whether nothing outside a file can name its class of this name: see :func:`.spare.is_spare`."""
        return is_spare(self.index, path, cls)

    def _place(self, gid: int, call: int) -> Place:
        number = self.index.function_file[gid]
        names = self._names.get(number)
        if names is None:
            names = self._names[number] = function_names(self.index.files[number].facts)
        return Place(self.index.files[number].path, *names[gid - self.index.first_function[number]], call)

    def reached(self, path: str, function: int, call: int) -> tuple[str, ...]:
        """Dotted names of the project's functions that a call, by its number, may run."""
        gid = self.index.first_function[self._numbers[path]] + function
        nodes = self.graph.targets.get((gid, call), ())
        found = {f for node in nodes for f in self.graph.functions_of(node)}
        if len(found) > _MAX_REACHED:  # a call that may reach anything tells nothing
            return ()
        return tuple(sorted(self.index.qualified_function[f] for f in found))
