"""What functions say about values that stand word for word where they were interpreted before.

A summary names what it does not know by where it comes from (:mod:`.interpret.references`), so that it holds the names
of the module and of the class: those of the other place are put for them.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from awp_lint.detector.semantics.coding import Coded
from awp_lint.detector.semantics.interpret.tensors import MAX_REFERENCE
from awp_lint.detector.semantics.library.facts import table
from awp_lint.detector.semantics.outside import Names

Call: TypeAlias = "tuple[str, tuple[Coded, ...], tuple[tuple[str, Coded], ...]]"
Meaning: TypeAlias = "str | tuple[bool, bool, bool] | None"  # of an import, of a name of the file, of any other


class Place(NamedTuple):
    """Where a function stands: its module, and its class with that."""

    module: str
    cls: str | None


@functools.lru_cache(maxsize=4096)
def _name(name: str) -> ast.Name:
    return ast.Name(id=name, ctx=ast.Load())


@functools.cache
def _of_libraries() -> frozenset[str]:
    """The modules of which the tables of libraries know something."""
    return frozenset(name.rpartition(".")[0] for name in table())


class Meanings:
    """What the names of a file mean, told in a way that is the same for other files. ``kind`` tells of a dotted name of
    the file whether it is a function, a class or a variable of it."""

    def __init__(self, names: Names, kind: Callable[[str], tuple[bool, bool, bool]]) -> None:
        self._names = names
        self._kind = kind
        self._prefix = f"{names.module}."
        self._known: dict[str, Meaning] = {}
        #: Whether functions of this file can be told from others at all.
        self.usable = bool(names.module) and not any(
            name == names.module or name.startswith(self._prefix) for name in _of_libraries()
        )

    def of(self, name: str) -> Meaning:
        """The meaning of a name at module level. Raises :class:`LookupError` where it would be told wrong elsewhere."""
        if name not in self._known:
            self._known[name] = self._meaning(name)
        return self._known[name]

    def _meaning(self, name: str) -> Meaning:
        dotted = self._names.qualified(_name(name))
        if dotted is None:
            return None
        if dotted == self._prefix + name:
            return self._kind(dotted)
        if dotted.startswith(self._prefix) or dotted == self._names.module:
            raise LookupError(name)
        return dotted


@dataclass(slots=True)
class ValuesCopy:
    """What a function says where it was found. ``longest``: characters of its longest reference."""

    place: Place
    torchy: bool
    said: tuple[Any, ...]  # the fields of its :class:`.summaries.FunctionValues` behind the name
    attributes: tuple[tuple[str, Coded], ...]
    calls: Sequence[Call]
    asked: Set[str]  # the names of its module that it uses
    meanings: Meanings  # of them
    longest: int


def holds(copy: ValuesCopy, place: Place, torchy: bool, meanings: Meanings) -> bool:
    """Whether a function that reads the same says the same at another place."""
    old = copy.place
    if copy.torchy is not torchy or old.module.partition(".")[0] != place.module.partition(".")[0]:
        return False
    longer = max(len(place.module) - len(old.module), len(place.cls or "") - len(old.cls or ""))
    if copy.longest + longer >= MAX_REFERENCE:
        return False
    try:
        return all(meanings.of(name) == copy.meanings.of(name) for name in copy.asked)
    except LookupError:
        return False


class Moved:
    """Puts the names of another place for those of the old one."""

    def __init__(self, old: Place, new: Place) -> None:
        self._module, self._new_module = old.module + ".", new.module + "."
        self._cls, self._new_cls = old.cls or "", new.cls or ""

    def text(self, text: str) -> str:
        """A reference or a dotted name."""
        at = text.startswith("<")
        if not text.startswith(self._module, at):
            return text
        end = at + len(self._cls)
        if self._cls and text.startswith(self._cls, at) and (end == len(text) or not _goes_on(text[end])):
            return text[:at] + self._new_cls + text[end:]
        return text[:at] + self._new_module + text[at + len(self._module) :]

    def coded(self, coded: Coded) -> Coded:
        """A value."""
        if isinstance(coded, str):
            return self.text(coded)
        if len(coded) < 3:
            return coded
        head, rank, cls, *held = coded
        cls = self.text(cls) if isinstance(cls, str) else cls
        if not held:
            return head, rank, cls
        element, items = held
        return (
            head,
            rank,
            cls,
            self.coded(element) if isinstance(element, str | tuple) else None,
            tuple([self.coded(item) for item in items]) if isinstance(items, tuple) else None,
        )

    def call(self, call: Call) -> Call:
        """What a call passes."""
        callee, operands, keywords = call
        coded = self.coded
        return (
            self.text(callee),
            tuple([coded(value) for value in operands]),
            tuple([(name, coded(value)) for name, value in keywords]),
        )

    def said(self, said: tuple[Any, ...]) -> tuple[Any, ...]:
        """What a function gives back."""
        positional, returns, declared, *flags = said
        coded = self.coded
        return (
            positional,
            tuple([coded(value) for value in returns]),
            None if declared is None else coded(declared),
            *flags,
        )


def _goes_on(character: str) -> bool:
    return character.isalnum() or character == "_"
