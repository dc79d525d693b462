"""Numbers that a loop reads only to add them up or to collect them: kept on the device, read once behind the loop."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import DTypeClass
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import method, names_in, short
from awp_lint.rules.edits import base_name, fresh_name, insert_before, insert_below, pure_chain
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.hostlists import may_write


def read_after_loop(read: ast.expr, definition: Definition) -> Fix | None:
    """The fix for a number that the loop only adds up or collects."""
    return _added_up(read, definition) or _collected(read, definition)


def _collected(read: ast.expr, definition: Definition) -> Fix | None:
    """``rows.append(x.item())`` to a list that the loop does nothing else with: collect tensors, read them together."""
    view = definition.view
    found = method(read) if isinstance(read, ast.Call) else None
    call = view.parent(read)
    if found is None or found[1] != "item" or not isinstance(call, ast.Call) or call.args != [read]:
        return None
    kept, statement = method(call), view.parent(call)
    if kept is None or kept[1] != "append" or not isinstance(kept[0], ast.Name) or not isinstance(statement, ast.Expr):
        return None
    loop = next(iter(view.loops(read)), None)
    if not isinstance(loop, ast.For | ast.While) or any(
        isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Try) for part in ast.walk(loop)
    ):
        return None
    name = kept[0].id
    bound = view.assignments(name)
    if len(bound) != 1 or not isinstance(bound[0], ast.Assign) or loop in view.loops(bound[0]):
        return None
    if not isinstance(bound[0].value, ast.List) or bound[0].value.elts:
        return None
    others = [use for use in view.uses(name) if use is not kept[0]]
    if any(view.parent(use) is None or use.lineno <= (loop.end_lineno or 0) for use in others):
        return None
    if _written_in(loop, found[0], view):
        return None
    stack = definition.torch_name("torch.stack")
    below = insert_below(loop, [f"{name} = {stack}({name}).flatten().tolist() if {name} else {name}"], definition)
    if below is None:
        return None
    return Fix(
        title=f"collect `{short(found[0], 40)}` on the device, read all of them behind the loop",
        safety=Safety.UNSAFE,
        edits=(definition.replace(read, definition.text(found[0])), below),
        effects=(Effect.TIMING, Effect.MEMORY),
        requires=(f"every `{short(found[0], 40)}` has the same type",),
    )


def _written_in(loop: ast.For | ast.While, source: ast.expr, view: FunctionView) -> bool:
    """Whether the loop writes in place into what an expression, or the value of a name in it, is made of."""
    names = set(names_in(source))
    for name in list(names):
        for statement in view.assignments(name):
            if isinstance(statement, ast.Assign):
                names |= names_in(statement.value)
    return any(may_write(part, name) for part in ast.walk(loop) for name in names)


def _added_up(read: ast.expr, definition: Definition) -> Fix | None:
    """``total += x.mean().item()`` in a loop that nobody leaves early: add on the device.

    The sum is kept in double precision, as Python keeps it.
    """
    view = definition.view
    statement = view.parent(read)
    found = method(read) if isinstance(read, ast.Call) else None
    if found is None or found[1] != "item" or not isinstance(statement, ast.AugAssign) or statement.value is not read:
        return None
    if not isinstance(statement.op, ast.Add) or not pure_chain(statement.target):
        return None
    loop = next(iter(view.loops(statement)), None)
    if not isinstance(loop, ast.For | ast.While) or any(
        isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Try) for part in ast.walk(loop)
    ):
        return None
    target = ast.unparse(statement.target)
    if any(
        isinstance(part, ast.Name | ast.Attribute) and part is not statement.target and ast.unparse(part) == target
        for part in ast.walk(loop)
    ):
        return None
    if view.value(found[0]).dtype is not DTypeClass.FLOAT and not _averages(found[0]):
        return None
    name = fresh_name(f"{base_name(statement.target)}_sum", definition, statement.lineno)
    code = definition.text(found[0])
    if not isinstance(found[0], ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        code = f"({code})"
    edits: list[Edit | None] = [
        insert_before(loop, [f"{name} = 0.0"], definition),
        definition.replace(statement, f"{name} = {name} + {code}.double()"),
        insert_below(loop, [f"{target} += float({name})"], definition),
    ]
    if None in edits:
        return None
    return Fix(
        title=f"add up `{short(found[0], 40)}` on the device, read the sum behind the loop",
        safety=Safety.UNSAFE,
        edits=tuple(edit for edit in edits if edit is not None),
        effects=(Effect.TIMING, Effect.NUMERICS),
        requires=(f"nobody reads `{target}` while the loop runs, and the device has double precision",),
    )


def _averages(node: ast.expr) -> bool:
    """Means are floating point whatever else is known."""
    found = method(node) if isinstance(node, ast.Call) else None
    return found is not None and found[1] in ("mean", "std", "var", "norm")
