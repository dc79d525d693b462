"""The two versions of the edited functions as code objects, and the functions of the running program that have them."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from types import CodeType, FunctionType
from typing import Any

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.rewrite import rewrite
from awp_lint.detector.verification.agent.task import CALLS, Edited, File

ARMS = ("A", "A2", "B")


class Misfit(Exception):
    """The patch cannot be swapped into this program; the text says why."""


class Target:
    """One edited function. ``codes``: arm → code, with the units' ticks; ``plain``: arm → code without."""

    def __init__(self, edited: Edited, codes: dict[str, CodeType], plain: dict[str, CodeType]) -> None:
        self.edited = edited
        self.codes = codes
        self.plain = plain
        self.functions: list[FunctionType] = []
        self.own: list[CodeType] = []  # what each function had

    def install(self, arm: str) -> None:
        """All live functions run the arm's code from their next call on."""
        code = self.codes[arm]
        for function in self.functions:
            function.__code__ = code

    def restore(self) -> None:
        """Give them their own code back."""
        for function, code in zip(self.functions, self.own):
            function.__code__ = code

    def callables(self, function: FunctionType) -> dict[str, FunctionType]:
        """Functions like ``function`` with other code: A and B without ticks, and ``own``, the original with them."""
        made = {}
        for arm, code in (("A", self.plain["A"]), ("B", self.plain["B"]), ("own", self.codes["A"])):
            copy = FunctionType(
                code, function.__globals__, function.__name__, function.__defaults__, function.__closure__
            )
            copy.__kwdefaults__ = function.__kwdefaults__
            copy.__dict__.update(function.__dict__)
            copy.__qualname__ = function.__qualname__
            made[arm] = copy
        return made


def by_path(code: CodeType) -> dict[Edited, CodeType]:
    """The code objects of a module by their paths; functions in functions are left out."""
    found: dict[Edited, CodeType] = {}

    def walk(outer: CodeType, names: tuple[str, ...]) -> None:
        counts: dict[str, int] = {}
        for constant in outer.co_consts:
            if not isinstance(constant, CodeType):
                continue
            name = constant.co_name
            number = counts.get(name, 0)
            counts[name] = number + 1
            found[Edited((*names, name), number)] = constant
            if not constant.co_flags & 0x2:  # CO_NEWLOCALS: a function; classes have none
                walk(constant, (*names, name))

    walk(code, ())
    return found


def changed(before: bytes, after: bytes) -> set[Edited]:
    """Functions and classes of either text that the other has not, or does something else in."""
    one, other = (by_path(compile(text, "", "exec", dont_inherit=True)) for text in (before, after))
    return {key for key in one.keys() | other.keys() if text_of(one.get(key)) != text_of(other.get(key))}


def text_of(code: CodeType | None, deep: bool = True) -> Any:
    """What code does, wherever it stands; ``deep``: with the functions in it."""
    if code is None:
        return None
    constants = [
        (text_of(c) if deep else "") if isinstance(c, CodeType) else (type(c).__name__, repr(c)) for c in code.co_consts
    ]
    return (code.co_code, code.co_names, code.co_varnames, code.co_flags, constants)


def targets(file: File, filename: str, marks: Sequence[AgentMark], calls: Edited | None) -> list[Target]:
    """Compile both versions. ``calls``: a function that ticks at each of its calls. Raises :class:`Misfit`."""
    plain = {
        "A": by_path(compile(file.before, filename, "exec", dont_inherit=True)),
        "B": by_path(compile(file.after, filename, "exec", dont_inherit=True)),
    }
    for edited in file.functions:
        if edited not in plain["A"] or edited not in plain["B"]:
            raise Misfit("%s is not a function of the module's top level or of a class" % edited.label())
        one, other = plain["A"][edited], plain["B"][edited]
        if one.co_freevars != other.co_freevars:
            raise Misfit("%s uses other variables of the functions around it" % edited.label())
    ticking = {}
    for arm, source, placed in (("A", file.before, marks), ("B", file.after, file.marks)):
        own = list(placed)
        if calls is not None:
            own.append(_call_mark(calls, plain[arm][calls], file.path))
        ticking[arm] = by_path(rewrite(source, filename, own)[0])
    found = []
    for edited in file.functions:
        a, b = ticking["A"][edited], ticking["B"][edited]
        codes = {"A": a, "A2": a.replace(), "B": b}
        found.append(Target(edited, codes, {arm: plain[arm][edited] for arm in ("A", "B")}))
    return found


def _call_mark(edited: Edited, code: CodeType, path: str) -> AgentMark:
    line = code.co_firstlineno
    return AgentMark(CALLS, path, "", "function", line, 0, line, 0, edited.label(), line, "step")


def find(found: Sequence[Target], path: str) -> None:
    """The live functions that have the original's code. Raises :class:`Misfit` where one has none."""
    import gc

    wanted = {(t.plain["A"].co_name, t.plain["A"].co_firstlineno): t for t in found}
    real: dict[str, bool] = {}
    for function in [o for o in gc.get_objects() if type(o) is FunctionType]:
        code = function.__code__
        target = wanted.get((code.co_name, code.co_firstlineno))
        if target is None:
            continue
        name = code.co_filename
        if name not in real:
            real[name] = os.path.realpath(name) == path
        if not real[name]:
            continue
        if code.co_freevars != target.plain["A"].co_freevars:
            raise Misfit("%s has other variables in the running program" % target.edited.label())
        target.functions.append(function)
        target.own.append(code)
    missing = [t.edited.label() for t in found if not t.functions]
    if missing:
        raise Misfit("no live function has the code of %s" % ", ".join(missing))


def bind_imports(file: File, found: Sequence[Target]) -> None:
    """Bind what the patch imports in the namespaces of its functions. It stays: a call under way may need it yet.

    Raises :class:`Misfit` where a name is taken by something else.
    """
    import importlib

    spaces = {id(f.__globals__): f.__globals__ for target in found for f in target.functions}
    for wanted in file.imports:
        try:
            value: Any = importlib.import_module(wanted.module)
        except ImportError as fault:
            raise Misfit("the patch imports %s: %s" % (wanted.module, fault)) from None
        if wanted.name is not None:
            try:
                value = getattr(value, wanted.name)
            except AttributeError:
                value = importlib.import_module("%s.%s" % (wanted.module, wanted.name))
        elif wanted.bound == wanted.module.partition(".")[0]:
            value = sys.modules[wanted.bound]
        for space in spaces.values():
            if wanted.bound in space and space[wanted.bound] is not value:
                raise Misfit("the name %s is taken in the module" % wanted.bound)
            space[wanted.bound] = value
