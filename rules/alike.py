"""What all layers of a model are given alike, as the calls that lead to them show."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.common import callee

_Function = ast.FunctionDef | ast.AsyncFunctionDef


def alike_in_layers(names: Iterable[str], view: FunctionView, file: FileView) -> bool:
    """Whether the calls that lead to a function pass these parameters on, unchanged, from above a loop over layers.

    Followed through functions of the same file that hand a parameter of theirs on as it is.
    """
    wanted = frozenset(names)
    current = view
    for frame in reversed(view.frequency(view.node).chain):
        if not wanted or frame.path != view.path or not _given(wanted, current):
            return False
        callers = [other for other in file.functions() if other.qualname == frame.function]
        found = [(other, call) for other in callers for call in calls_at(other, frame.line, current)]
        if not found:
            return False
        caller, call = found[0]
        passed = passed_to(call, current)
        if passed is None or not wanted <= passed.keys():
            return False
        given = [passed[name] for name in wanted]
        if not all(isinstance(argument, ast.Name) for argument in given):
            return False
        wanted = frozenset(argument.id for argument in given if isinstance(argument, ast.Name))
        layers = [loop for loop in caller.loops(call) if caller.loop_kind(loop) is LoopKind.LAYERS]
        if layers:
            return not any(wanted & caller.written_in(loop) for loop in layers)
        if caller.loops(call):
            return False
        current = caller
    return False


def _given(names: frozenset[str], view: FunctionView) -> bool:
    """Whether the names are parameters that the function leaves as they are."""
    return names <= set(_parameters(view)) and not any(view.assignments(name) for name in names)


def _parameters(view: FunctionView) -> list[str]:
    if not isinstance(view.node, _Function):
        return []
    arguments = view.node.args
    return [a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]


def calls_at(caller: FunctionView, line: int, callee_view: FunctionView) -> list[ast.Call]:
    """The calls of a line that may run a function: those of its name, or of an object where it is its ``forward``."""
    name = callee_view.qualname.rpartition(".")[2]
    calls = [c for c in caller.nodes(ast.Call) if isinstance(c, ast.Call) and c.lineno == line]
    if name in ("forward", "__call__"):
        wanted = f"{callee_view.module}.{callee_view.qualname}".lstrip(".")
        return [c for c in calls if wanted in caller.targets(c)]
    return [c for c in calls if callee(c) == name]


def passed_to(call: ast.Call, view: FunctionView) -> dict[str, ast.expr] | None:
    """The arguments of a call by the parameters they are for; None where some are unpacked."""
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return None
    names = _parameters(view)
    if view.class_name is not None and names[:1] == ["self"]:
        names = names[1:]
    found = dict(zip(names, call.args, strict=False))
    found.update({k.arg: k.value for k in call.keywords if k.arg is not None})
    return found
