"""Abstract interpretation of one definition: what each expression may be at run time.

One pass over the definition's ``ast`` with an environment of values, joined where branches meet; a loop is repeated
while its variables change, at most three times. Nothing is executed and nothing outside the definition is read but by
:class:`~awp_lint.detector.semantics.outside.Outside`.
"""

from __future__ import annotations

import ast
import contextlib

from awp_lint.detector.semantics.interpret import expressions as _expressions  # noqa: F401  registers its handlers
from awp_lint.detector.semantics.interpret import invocations as _invocations  # noqa: F401  registers its handlers
from awp_lint.detector.semantics.interpret import tensors
from awp_lint.detector.semantics.interpret.annotations import note_root
from awp_lint.detector.semantics.interpret.machine import Budget, Known, Machine, Table, evaluate
from awp_lint.detector.semantics.interpret.parameters import bind_parameters
from awp_lint.detector.semantics.interpret.statements import block
from awp_lint.detector.semantics.outside import Names, Outside, ValueTable
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Kind, make
from awp_lint.detector.semantics.view import Target

Definition = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.Module


def interpret(
    node: Definition,
    names: Names,
    outside: Outside,
    *,
    qualname: str = "<module>",
    cls: str | None = None,
    enclosing: ValueTable | None = None,
    target: Target | None = None,
    known: Known | None = None,
) -> Table:
    """Interpret one definition.

    ``qualname`` is dotted without ``<locals>``, ``cls`` the dotted name of the class of a method, ``enclosing`` the
    table of the function around a nested one, ``known`` what the functions of the same file share. Never raises for any
    syntax tree; what is too deep or too large stays unknown.
    """
    m = Machine(
        names,
        outside,
        qualname=qualname,
        cls=cls,
        enclosing=enclosing,
        target=target if target is not None else Target(),
    )
    if known is not None:
        known.lend(m)
    return run(m, node)


def run(m: Machine, node: Definition) -> Table:
    """Interpret a definition on a fresh machine."""
    table = Table()
    table.values = m.table
    with contextlib.suppress(Budget):
        if isinstance(node, ast.Module):
            block(m, node.body)
        elif not device_code(m, node):
            bind_parameters(m, node)
            if isinstance(node, ast.Lambda):
                m.returned.append(evaluate(m, node.body))
            else:
                block(m, node.body)
    returns = tensors.joined(m.returned) or UNKNOWN
    if m.yielded:
        held = tensors.joined(m.yielded)
        returns = make(Kind.ITERATOR, element=held if held != UNKNOWN else None, certainty=Certainty.PROVEN)
    if m.live:
        m.exits.append(m.env)
    table.close(returns, m.bound, m.exits)
    return table


_KERNEL_LANGUAGES = frozenset({"triton", "cutlass", "numba", "tilelang", "pallas", "warp", "helion"})
_VOCABULARIES = frozenset({"triton.language", "helion.language"})  # what only kernels call


def device_code(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    """Whether a function is written in a kernel language: its names are not run by Python."""
    if isinstance(node, ast.Lambda):
        return False
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        note_root(m, target)
        dotted = m.names.qualified(target)
        if dotted is not None and dotted.partition(".")[0] in _KERNEL_LANGUAGES:
            return True
    for statement in node.body:  # a decorator of the project's own may make it one
        made = statement.iter if isinstance(statement, ast.For) else getattr(statement, "value", None)
        called = made.func if isinstance(made, ast.Call) else None
        if isinstance(called, ast.Attribute) and isinstance(called.value, ast.Name):
            note_root(m, called.value)
            if m.names.qualified(called.value) in _VOCABULARIES:
                return True
    return False


__all__ = ["Definition", "Known", "Table", "interpret", "run"]
