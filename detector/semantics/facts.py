"""What one file says about calls and classes: plain data that depends on the file's text alone.

:func:`extract` makes a :class:`FileFacts` in one pass over the ``ast`` tree; linking (:mod:`.index`, :mod:`.callgraph`)
puts the facts of all files together. Facts hold no path and no module name, so that they can be cached by content.

A :data:`Ref` says symbolically what an expression refers to, so that it can be resolved once all files are known:

==========================  ==========================================================================
``"a.b.c"``                 a chain of names whose root is not a local variable
``"?"``                     unknown
``("p", f, "x")``           parameter ``x`` of the file's function number ``f``
``("self",)`` ``("cls",)``  the instance or class of the method
``("super",)``              its base classes
``("f", i)``                the file's function number ``i`` (a nested function or a lambda)
``(".", base, "x")``        attribute
``("()", base)``            what calling it gives
``("[]", base)``            an item of it
``("{}", a, b, …)``         a container of these
``("|", a, b, …)``          one of these
==========================  ==========================================================================
"""

from __future__ import annotations

import hashlib
import itertools
import marshal
from typing import Any, NamedTuple, TypeAlias

Ref: TypeAlias = "str | tuple[object, ...]"

UNKNOWN: Ref = "?"
SELF: Ref = ("self",)
CLS: Ref = ("cls",)
SUPER: Ref = ("super",)

# What a call is guarded by.
GUARD_SKIP = 1  # does not heat what it calls: training, tests, error paths, export
GUARD_ONCE = 2  # runs once a process: lazily made state
GUARD_REFERENCE = 4  # not called here, only handed on: a callback
GUARD_START = 8  # handed on to be run at once: a thread's target, a task
GUARD_LAST = 32  # of what it gives, the last position alone is used
GUARD_OFF = 64  # no gradients are recorded around it
GUARD_FIRST = 16  # runs in the first step of a request only: prefill, lazily set-up state of a request


class CallFact(NamedTuple):
    """One call. ``loops`` are values of LoopKind around it, outermost first; ``column`` is in UTF-8 bytes; ``passed``
    and ``when`` (what must hold of the function's parameters) are in the words of :mod:`.conditions`: a code for each
    positional argument, ``name=code`` for each that goes by name, ``*`` and ``**`` for what is unpacked."""

    line: int
    column: int
    callee: Ref
    loops: tuple[str, ...]
    guard: int
    passed: tuple[str, ...] = ()
    when: tuple[tuple[str, str], ...] = ()


class BranchFact(NamedTuple):
    """A part of a function that runs in one state of a parameter or switch only (see :mod:`.conditions`), with its
    range."""

    parameter: str
    state: str
    line: int
    column: int
    end_line: int
    end_column: int


class LoopFact(NamedTuple):
    """A loop that counts steps, tokens or requests, with its ``ast`` range."""

    kind: str
    line: int
    column: int
    end_line: int
    end_column: int


class FunctionFact(NamedTuple):
    """One function, method, nested function or lambda. The module's top level is function 0, ``<module>``."""

    qualname: str
    line: int  # of the first decorator, as co_firstlineno
    header: tuple[int, int]  # lines from the first decorator to the last line before the body
    body: tuple[
        int, int, int
    ]  # first and last line and indentation of a body that has its lines for itself, else zeros
    cls: int  # index of the class that directly holds it, -1
    outer: int  # index of the function around it, -1
    kind: str  # "function", "async", "lambda", "module"
    binding: str  # "", "static", "class", "property"
    regions: int  # Region flags of the whole definition
    decorators: tuple[Ref, ...]
    routes: tuple[str, ...]  # last attribute names of decorators that are calls or attributes: "post", "deployment"
    parameters: tuple[str, ...]
    annotations: tuple[tuple[str, Ref], ...]
    returns: tuple[Ref, ...]  # the return annotation first, when there is one, as an instance
    calls: tuple[CallFact, ...]
    properties: tuple[
        tuple[str, tuple[str, ...], int, int], ...
    ]  # own-file property names read from self: loops, line, guard
    writes: tuple[str, ...]  # attributes of self that are assigned
    loops: tuple[LoopFact, ...]
    awp: str  # what an ``# awp: …`` comment on the header says, ""
    defaults: tuple[tuple[str, str], ...] = ()  # of parameters that have one: its code
    branches: tuple[BranchFact, ...] = ()
    closed: bool = False  # takes no names but those of its parameters, and is what it is written as: undecorated
    tensors: bool = False  # a parameter is annotated as a tensor of torch


class ClassFact(NamedTuple):
    """One class. ``attributes`` are what methods assign to self, and class-level assignments and annotations;
    ``defaults`` what the class itself gives the fields of a configuration, as the texts of constants."""

    qualname: str
    line: int
    outer: int  # index of the function around it, -1
    bases: tuple[Ref, ...]
    decorators: tuple[Ref, ...]
    methods: tuple[tuple[str, int], ...]
    attributes: tuple[tuple[str, int, Ref], ...]  # name, function in whose scope the ref stands, ref
    defaults: tuple[tuple[str, str], ...] = ()


class ImportFact(NamedTuple):
    """``from {level dots}{module} import {name} as {bound}``; ``name`` is None for ``import module``; "*" for all."""

    bound: str
    level: int
    module: str
    name: str | None
    scope: int  # index of the function that imports


class FileFacts(NamedTuple):
    """Everything linking needs of one file."""

    imports: tuple[ImportFact, ...]
    functions: tuple[FunctionFact, ...]
    classes: tuple[ClassFact, ...]
    names: tuple[str, ...]  # bound at module level by anything but imports
    variables: tuple[tuple[str, Ref], ...]  # of them, those that a Ref describes
    exports: tuple[str, ...] | None  # __all__ where it is a literal
    nodes: int  # size of the tree, in walked nodes
    loops: bool  # whether code outside functions loops
    strings: tuple[str, ...] = ()  # names of classes that strings are


def packed(facts: FileFacts) -> tuple[Any, ...]:
    """The facts in plain tuples, which are stored and read at a third of the cost."""
    functions = []
    for function in facts.functions:
        plain: list[Any] = [*function]
        for place, _ in _NESTED:
            plain[place] = [tuple(fact) for fact in plain[place]]
        functions.append(plain)
    imports = [tuple(fact) for fact in facts.imports]
    return (imports, functions, [tuple(c) for c in facts.classes], *facts[3:])


def unpacked(plain: tuple[Any, ...]) -> FileFacts:
    """The facts from plain tuples."""
    imports, functions, classes, *others = plain
    for function in functions:
        for place, kind in _NESTED:
            function[place] = tuple(map(_new, itertools.repeat(kind), function[place]))
    return FileFacts(
        tuple(map(_new, itertools.repeat(ImportFact), imports)),
        tuple(map(_new, itertools.repeat(FunctionFact), functions)),
        tuple(map(_new, itertools.repeat(ClassFact), classes)),
        *others,
    )


_new: Any = tuple.__new__
#: The fields of functions that hold facts themselves.
_NESTED = tuple(
    (FunctionFact._fields.index(name), kind)
    for name, kind in (("calls", CallFact), ("loops", LoopFact), ("branches", BranchFact))
)


def function_names(facts: FileFacts) -> list[tuple[str, int]]:
    """What tells a file's functions apart when their numbers change: qualified name, and which one of that name."""
    seen: dict[str, int] = {}
    found = []
    for function in facts.functions:
        number = seen.get(function.qualname, 0)
        seen[function.qualname] = number + 1
        found.append((function.qualname, number))
    return found


def shape(facts: FileFacts) -> bytes:
    """A digest of the facts without positions: equal shapes give equal links, but for line numbers."""
    functions = [
        (
            f.qualname, f.cls, f.outer, f.kind, f.binding, f.regions, f.decorators, f.routes, f.parameters,
            f.annotations, f.returns, [call[2:] for call in f.calls],
            [(name, loops, guard) for name, loops, _, guard in f.properties], f.writes, f.awp, f.defaults,
            list(dict.fromkeys(branch[:2] for branch in f.branches)),
        )
        for f in facts.functions
    ]  # fmt: skip
    classes = [(c.qualname, c.outer, c.bases, c.decorators, c.methods, c.attributes, c.defaults) for c in facts.classes]
    imports = [tuple(fact) for fact in facts.imports]
    plain: Any = (imports, functions, classes, facts.names, facts.variables, facts.exports, facts.strings)
    # version 2 of the format: later ones tell how often an object is referred to, which is chance
    return hashlib.blake2b(marshal.dumps(plain, 2), digest_size=16).digest()
