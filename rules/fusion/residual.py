"""A residual added by one kernel right before a norm whose own kernel would add it as well."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView

#: Packages of serving engines whose norms take the residual along: ``norm(x, residual)``.
_ENGINES = ("vllm.", "sglang.", "lmdeploy.", "aphrodite.")
_NORMS = ("RMSNorm", "GemmaRMSNorm")


@dataclass(frozen=True, slots=True)
class ResidualNorm:
    """``x = residual + x`` and, some statements on, ``norm(x)``."""

    added: ast.BinOp
    norm: ast.Call
    residual: str


def residual_norms(view: FunctionView) -> Iterator[ResidualNorm]:
    """Sums of two local tensors that an engine's norm reads next, in a straight line of one block."""
    sums = [node for node in view.nodes(ast.BinOp) if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)]
    added_names = {part.id for node in sums for part in (node.left, node.right) if isinstance(part, ast.Name)}
    for call in view.nodes(ast.Call) if added_names else ():
        if not isinstance(call, ast.Call) or len(call.args) != 1 or call.keywords:
            continue
        name = call.args[0]
        if not isinstance(name, ast.Name) or name.id not in added_names:
            continue
        statement = view.statement(call)
        bound = [s for s in view.assignments(name.id) if s.lineno < statement.lineno]
        if not bound or view.parent(bound[-1]) is not view.parent(statement):
            continue
        last = bound[-1]
        if not isinstance(last, ast.Assign) or not isinstance(last.value, ast.BinOp):
            continue
        added = last.value
        parts = (added.left, added.right)
        names = {part.id for part in parts if isinstance(part, ast.Name)}
        if not isinstance(added.op, ast.Add) or len(names) != 2 or name.id not in names:
            continue
        if _kept(names, name.id, view) and _engine_norm(call, view):
            yield ResidualNorm(added, call, next(iter(names - {name.id})))


def _engine_norm(call: ast.Call, view: FunctionView) -> bool:
    value = view.value(call.func)
    if value.kind is not Kind.MODULE or value.cls is None:
        return False
    return value.cls.startswith(_ENGINES) and value.cls.rpartition(".")[2] in _NORMS


def _kept(names: set[str], result: str, view: FunctionView) -> bool:
    """Whether the other summand is a residual: a state of the same local that an earlier statement kept."""
    (other,) = names - {result}
    return any(
        isinstance(s, ast.Assign) and isinstance(s.value, ast.Name) and s.value.id == result
        for s in view.assignments(other)
    )
