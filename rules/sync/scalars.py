"""One read of a 0-d device tensor that Python asks for again and again as a number."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from awp_lint.detector.finding import Effect, Fix, Safety
from awp_lint.detector.semantics.values import Device, DTypeClass
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import short
from awp_lint.rules.doubts import default_none, mixed
from awp_lint.rules.edits import insert_before
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import takes_number


def number_effects(dtype: DTypeClass) -> tuple[Effect, ...]:
    """Whole numbers are the same on the host; floats are compared as doubles there."""
    whole = dtype in (DTypeClass.INT, DTypeClass.BOOL)
    return (Effect.TIMING,) if whole else (Effect.TIMING, Effect.NUMERICS)


def scalar(node: ast.expr, definition: Definition, depth: int = 2) -> Fix | None:
    """A 0-d tensor in a local name whose every use is a number: read it where it is assigned."""
    view = definition.view
    for part in ast.walk(node):
        if not (isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)):
            continue
        value = view.value(part)
        if not value.is_tensor or value.rank not in (None, 0) or value.device is Device.HOST:
            continue
        uses = view.uses(part.id)
        if any(view.parent(use) is None for use in uses):
            continue
        handed = [use for use in uses if _returned(use, view)]
        if len(handed) == len(uses) or any(not takes_number(view, use) for use in uses if use not in handed):
            continue
        bound = view.assignments(part.id)
        if not bound and not handed and len(uses) > 1 and value.rank == 0:
            return _parameter_fix(part.id, uses, definition)
        if not bound or not all(_counts(more) for more in bound[1:]):
            continue
        statement = bound[0]
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
            continue
        if not isinstance(statement.targets[0], ast.Name):
            continue
        loops = view.loops(statement)
        if len(uses) < 2 and not handed and list(view.loops(part)) == list(loops):
            continue  # one wait either way
        made = view.value(statement.value)
        if not made.is_tensor or made.rank not in (None, 0) or mixed(statement.value, view):
            continue
        parts = [p for p in ast.walk(statement.value) if isinstance(p, ast.Name) and p.id != part.id]
        if depth > 0 and any(scalar(name, definition, depth - 1) for name in parts):
            continue  # that one first: its value may be a number then
        code = definition.text(statement.value)
        atom = isinstance(statement.value, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
        new = f"{code}.item()" if atom else f"({code}).item()"
        return Fix(
            title=f"read `{part.id}` once, where it is computed",
            safety=Safety.UNSAFE,
            edits=(definition.replace(statement.value, new),),
            effects=number_effects(value.dtype),
            requires=(
                *(() if made.rank == 0 else (f"`{short(statement.value, 40)}` has one element",)),
                *((f"callers take `{part.id}` for a number",) if handed else ()),
            ),
        )
    return None


def _counts(statement: ast.stmt) -> bool:
    """``n -= 1``: goes on with a number as with a tensor."""
    return (
        isinstance(statement, ast.AugAssign)
        and isinstance(statement.op, ast.Add | ast.Sub | ast.Mult)
        and isinstance(statement.value, ast.Constant)
        and type(statement.value.value) is int
    )


def _returned(use: ast.expr, view: FunctionView) -> bool:
    """Whether a private method hands a value on as it is: its callers are its own class."""
    parent = view.parent(use)
    if isinstance(parent, ast.Tuple):
        parent = view.parent(parent)
    name = view.qualname.rpartition(".")[2]
    return isinstance(parent, ast.Return) and name.startswith("_") and view.class_name is not None


def _parameter_fix(name: str, uses: Sequence[ast.expr], definition: Definition) -> Fix | None:
    """A 0-d tensor that the function was given and takes for a number again and again: read it at its begin."""
    view = definition.view
    if isinstance(view.node, ast.Lambda | ast.Module) or name in default_none(view):
        return None
    if any(view.loops(use) for use in uses) or definition.view.value(uses[0]).dtype is not DTypeClass.INT:
        return None
    body = view.node.body
    first = next((s for s in body if any(use in [*ast.walk(s)] for use in uses)), None)
    above = insert_before(first, [f"{name} = int({name})"], definition) if first is not None else None
    if above is None:
        return None
    return Fix(
        title=f"read `{name}` once, where the function begins",
        safety=Safety.UNSAFE,
        edits=(above,),
        effects=number_effects(DTypeClass.INT),
    )
