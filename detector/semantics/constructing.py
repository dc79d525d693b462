"""What a class's constructor leaves switched off: ``if self.every > 0:`` where ``__init__(…, every=-1)`` stored it.

Such an attribute has its default where no construction in the project passes the parameter; one that is handed on from
the constructor around, as it came, is followed there. Models that are made from saved configurations say nothing by
their defaults, nor do modules that nothing in sight constructs: a table or a file may list what they are made with.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence

from awp_lint.detector.semantics.conditions import SAVED, filled_by, passed_for
from awp_lint.detector.semantics.edges import Edge
from awp_lint.detector.semantics.facts import GUARD_REFERENCE
from awp_lint.detector.semantics.gating import Unresolved, bound_of, unbound
from awp_lint.detector.semantics.index import Index
from awp_lint.detector.semantics.switches import VARIES, switched_off

#: Parameters that bound something where somebody gives them.
_LIMIT = re.compile(r"(clip|max|min|limit|truncate)_\w+|\w+_(limit|threshold)")
_DEPTH = 4  # constructors that hand a parameter on


class Constructions:
    """What attributes are made with. ``edges`` are those of the call graph, before parts of functions are divided."""

    def __init__(
        self,
        index: Index,
        edges: Sequence[Sequence[Edge]],
        unresolved: Unresolved,
        is_module: Callable[[int], bool],
    ) -> None:
        self._index = index
        self._edges = edges
        self._unresolved = unresolved
        self._is_module = is_module
        self._callers: dict[int, list[tuple[int, Edge]]] | None = None
        self._known: dict[tuple[int, str], frozenset[str]] = {}

    def defaults(self, cls: int, attribute: str) -> frozenset[str]:
        """The texts of the constants that an attribute of a class's objects has; empty where anything else may be."""
        key = cls, attribute
        if key not in self._known:
            made = self._made_from(cls, attribute)
            self._known[key] = frozenset(self._passed(*made, _DEPTH) or ()) if made is not None else frozenset()
        return self._known[key]

    def _made_from(self, cls: int, attribute: str) -> tuple[int, str] | None:
        """The constructor, and the parameter of it, that alone an attribute is made from, in derived classes too."""
        index = self._index
        found: set[tuple[int, str] | None] = set()
        writers: set[int] = set()
        for current in {*index.mro(cls), *index.below(cls)}:
            fact = index.classes[current]
            first = index.first_function[index.class_file[current]]
            for name, number, ref in fact.attributes:
                if name == attribute:
                    own = type(ref) is tuple and ref[:2] == ("p", number)
                    found.add((first + number, str(ref[2])) if own else None)
            writers.update(first + n for _, n in fact.methods if attribute in index.functions[first + n].writes)
            if any("ConfigMixin" in base for base in index.base_names(current)):
                return None
        made = next(iter(found)) if len(found) == 1 else None
        if made is None or writers != {made[0]} or VARIES.fullmatch(made[1]):
            return None
        function = index.functions[made[0]]
        constructor = function.qualname.endswith(".__init__") and "register_to_config" not in function.routes
        return made if constructor else None

    def _passed(self, gid: int, name: str, depth: int) -> set[str] | None:
        """The texts of the constants that are passed for a parameter of a constructor, or of a function that hands it
        on to one; None where it may be others."""
        function = self._index.functions[gid]
        cls = self._index.class_of(gid)
        default = _text(dict(function.defaults).get(name, ""))
        if not depth or name not in function.parameters:
            return None
        position = function.parameters.index(name) - bound_of(function)
        if self._may_be_passed(gid, cls, name, position):
            return None
        found: set[str] = set()
        for node, edge in self._calls_of(gid):
            if node >= len(self._index.functions) or edge.guard & GUARD_REFERENCE or edge.call < 0:
                return None
            call = self._index.functions[node].calls[edge.call]
            code = "" if unbound(call.callee, function) else passed_for(call.passed, name, position)
            if code == SAVED:
                continue  # of an object that one of the other calls made
            filling = None if code is None else filled_by(code)
            if code is None:
                if not default:
                    return None
                found.add(default)
            elif filling is not None:
                above = self._passed(node, filling, depth - 1)
                if above is None or not all(switched_off("true", text) for text in above):
                    return None
                found.add("False")
            elif code[:1] == "=":
                above = self._passed(node, code[1:], depth - 1)
                if above is None:
                    return None
                found |= above
            elif _text(code):
                found.add(_text(code))
            else:
                return None
        if found or cls is None or not function.qualname.endswith(".__init__"):
            return found or None
        # Nobody constructs it here. What modules are made with may stand in a file, but a choice among several ways and
        # a limit are mostly left as they are.
        chosen = default[:1] in ("'", '"') or (default == "None" and _LIMIT.fullmatch(name) is not None)
        told = chosen if self._is_module(cls) else default not in ("", "None")
        return {default} if told else None

    def _may_be_passed(self, gid: int, cls: int | None, name: str, position: int) -> bool:
        """Whether a call of which nobody knows what it runs may pass a function's parameter."""
        function = self._index.functions[gid]
        if cls is None or not function.qualname.endswith(".__init__"):
            return self._unresolved.may_pass(self._index.function_file[gid], function, name, position)
        classes = {self._index.classes[c].qualname.rpartition(".")[2] for c in (cls, *self._index.below(cls))}
        return any(self._unresolved.may_construct(short, name, position) for short in classes)

    def _calls_of(self, gid: int) -> Iterator[tuple[int, Edge]]:
        if self._callers is None:
            self._callers = {}
            for node, edges in enumerate(self._edges):
                for edge in edges:
                    self._callers.setdefault(edge.target, []).append((node, edge))
        for node, edge in self._callers.get(gid, ()):
            if node < len(self._index.functions):
                yield node, edge
            else:
                yield from self._callers.get(node, ())


def _text(code: str) -> str:
    """The text of a default that its code tells; the empty string for others."""
    if code[:1] == "#":
        return code[1:]
    return code if code in ("None", "True", "False") else ""
