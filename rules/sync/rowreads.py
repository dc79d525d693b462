"""Rows of one device tensor that a loop brings to the host one by one: the whole tensor is brought there before it."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, method, short
from awp_lint.rules.doubts import default_none, mixed, optional_names
from awp_lint.rules.edits import base_name, fresh_name, insert_before, pure_chain
from awp_lint.rules.flow import version
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import guarded
from awp_lint.rules.sync.hostlists import inside, may_write, pairs, written_by

_READS = frozenset({"cpu", "tolist", "numpy"})
#: Methods without arguments that give at every place the same bits whatever the shape, and on every device.
_EXACT = frozenset({
    "round", "int", "long", "float", "double", "half", "bfloat16", "bool", "abs", "neg", "floor", "ceil", "trunc",
    "detach",
})  # fmt: skip


def whole_rows(read: ast.expr, definition: Definition) -> Fix | None:
    """The fix for a read of a row, by the loop's own variable or by its counter."""
    return _looped(read, definition) or _counted(read, definition)


# the loop goes over the tensor --------------------------------------------------------------------------------------


def _looped(read: ast.expr, definition: Definition) -> Fix | None:
    """``for box in boxes: a, b = box.round().tolist()``: go over the rows of ``boxes.round().tolist()``."""
    view = definition.view
    chain = _chain(read, view)
    if chain is None:
        return None
    row, whole = chain
    loop = next(iter(view.loops(row)), None)
    if not isinstance(loop, ast.For | ast.comprehension) or (isinstance(loop, ast.comprehension) and loop.is_async):
        return None
    for target, source in pairs(loop.target, loop.iter):
        if not isinstance(target, ast.Name) or target.id != row.id:
            continue
        value = view.value(source)
        sure = value.is_tensor and value.device is not Device.HOST and not mixed(source, view)
        if not sure or not _used_once(row, loop, view):
            return None
        if not inside(whole, loop, view) or _conditional(whole, loop, view) or _changed_in(source, loop, view):
            return None
        if isinstance(source, ast.Call) and not isinstance(source.func, ast.Attribute):
            return None
        code, text = definition.text(whole), definition.text(source)
        if not code.startswith(row.id) or "\n" in code or "\n" in text:
            return None
        if not isinstance(source, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
            text = f"({text})"
        listed, numpy = code.endswith(".tolist()"), code.endswith(".numpy()")
        if numpy and value.rank == 1:
            return None  # elements of an array are no arrays
        return Fix(
            title=f"bring all of `{short(source, 40)}` to the host before the loop",
            safety=Safety.UNSAFE,
            edits=(
                definition.replace(source, text + code.removeprefix(row.id)),
                definition.replace(whole, row.id),
            ),
            effects=(Effect.TIMING,) if listed else (Effect.TIMING, Effect.ALIASING, Effect.MEMORY),
            requires=(f"`{short(source, 40)}` has two dimensions or more",) if numpy and value.rank is None else (),
        )
    return None


def _used_once(row: ast.Name, loop: ast.For | ast.comprehension, view: FunctionView) -> bool:
    """Whether a loop variable is used at one place only, and bound by its loop alone."""
    for use in view.uses(row.id):
        if use is not row and (inside(use, loop, view) or view.parent(use) is None):
            return False
        if use is not row and isinstance(loop, ast.For) and version(row.id, use, view).node is loop:
            return False
    return not any(s is not loop and inside(s, loop, view) for s in view.assignments(row.id))


def _chain(read: ast.expr, view: FunctionView) -> tuple[ast.Name, ast.Call] | None:
    """The row that a read's methods start from, and the last call: ``.numpy()`` may follow ``.cpu()``."""
    found = method(read) if isinstance(read, ast.Call) else None
    if found is None or found[1] not in _READS or not isinstance(read, ast.Call) or read.args or read.keywords:
        return None
    last = read
    if found[1] == "cpu":
        outer = _called_on(read, view)
        while outer is not None and method(outer) is not None and outer.func.attr in ("numpy", "tolist"):  # type: ignore[attr-defined]
            last, outer = outer, _called_on(outer, view)
    node = found[0]
    while isinstance(node, ast.Call):
        inner = method(node)
        if inner is None or inner[1] not in _EXACT or node.args or node.keywords:
            return None
        node = inner[0]
    return (node, last) if isinstance(node, ast.Name) else None


def _called_on(node: ast.expr, view: FunctionView) -> ast.Call | None:
    """The method call without arguments that is made on a value at once."""
    attribute = view.parent(node)
    call = view.parent(attribute) if isinstance(attribute, ast.Attribute) else None
    plain = isinstance(call, ast.Call) and call.func is attribute and not call.args and not call.keywords
    return call if isinstance(call, ast.Call) and plain else None


def _conditional(node: ast.expr, loop: ast.For | ast.comprehension, view: FunctionView) -> bool:
    """Whether a pass may leave the node out."""
    if isinstance(loop, ast.For):
        return guarded(view, node, loop)
    holder = view.parent(loop)
    if not isinstance(holder, ast.ListComp | ast.SetComp | ast.GeneratorExp) or loop.ifs or len(holder.generators) > 1:
        return True
    for parent in ancestors(view, node):
        if parent is holder:
            return False
        if isinstance(parent, ast.IfExp | ast.BoolOp | ast.Lambda | ast.comprehension):
            return True
    return True


# the loop counts ----------------------------------------------------------------------------------------------------


def _counted(read: ast.expr, definition: Definition) -> Fix | None:
    """``for row in range(n): kept.append(x[row][mask[row]].cpu())``: rows of ``x.cpu()``, cut on the host."""
    view = definition.view
    found = method(read) if isinstance(read, ast.Call) else None
    if found is None or found[1] not in ("cpu", "tolist") or not isinstance(read, ast.Call):
        return None
    if read.args or read.keywords:
        return None
    loop = next(iter(view.loops(read)), None)
    anchor = _anchor(read, loop, view)
    if anchor is None or not isinstance(loop, ast.For | ast.comprehension):
        return None
    counter = _counter(loop)
    if counter is None or any(s is not loop and inside(s, loop, view) for s in view.assignments(counter)):
        return None
    taken = _taken(found[0], counter, loop, view)
    if not taken:
        return None
    doubtful = optional_names(view) | default_none(view)
    lines: list[str] = []
    edits: list[Edit] = []
    for name, node in {ast.unparse(node): node for node in taken}.items():
        if name in doubtful or mixed(node, view):
            return None
        if view.value(node).device is Device.HOST:
            continue
        fresh = fresh_name(f"{base_name(node)}_host", definition, (anchor.lineno, name))
        lines.append(f"{fresh} = {definition.text(node)}.cpu()")
        edits += [definition.replace(part, fresh) for part in taken if ast.unparse(part) == name]
    above = insert_before(anchor, lines, definition)
    if above is None or not lines:
        return None
    listed = found[1] == "tolist"
    if not listed:
        dot = definition.source.text.rindex(".", 0, definition.range(read.func)[1])
        edits.append(Edit(dot, definition.range(read)[1], ""))
    first = short(taken[0], 40)
    return Fix(
        title=f"bring all of `{first}` to the host before the loop",
        safety=Safety.UNSAFE,
        edits=(above, *edits),
        effects=(Effect.TIMING, Effect.MEMORY) if listed else (Effect.TIMING, Effect.MEMORY, Effect.ALIASING),
        requires=(f"the loop takes most rows of `{first}`, and at least one",),
    )


def _anchor(read: ast.expr, loop: ast.AST | None, view: FunctionView) -> ast.stmt | None:
    """The statement above which is computed what every pass needs."""
    if isinstance(loop, ast.For):
        return loop if inside(read, loop, view) and not guarded(view, read, loop) else None
    if not isinstance(loop, ast.comprehension) or loop.is_async or _conditional(read, loop, view):
        return None
    statement = view.statement(read)
    holder = view.parent(loop)
    plain = isinstance(statement, ast.Assign | ast.AnnAssign | ast.Return) and statement.value is holder
    return statement if plain and inside(read, loop, view) and isinstance(holder, ast.ListComp) else None


def _counter(loop: ast.For | ast.comprehension) -> str | None:
    """The name that counts the passes: of ``range(n)`` (from zero, one by one) or ``enumerate(…)``."""
    if not isinstance(loop.iter, ast.Call) or not isinstance(loop.iter.func, ast.Name) or loop.iter.keywords:
        return None
    target = loop.target
    if len(loop.iter.args) != 1:
        return None
    if loop.iter.func.id == "enumerate" and isinstance(target, ast.Tuple) and len(target.elts) == 2:
        target = target.elts[0]
    elif loop.iter.func.id != "range":
        return None
    return target.id if isinstance(target, ast.Name) else None


def _taken(node: ast.expr, counter: str, loop: ast.AST, view: FunctionView) -> list[ast.expr]:
    """The tensors of whose rows an expression is cut, the first one first; empty for anything else."""
    while isinstance(node, ast.Call):
        found = method(node)
        if found is None or found[1] not in ("detach", "clone", "contiguous") or node.args or node.keywords:
            return []
        node = found[0]
    others: list[ast.expr] = []
    while isinstance(node, ast.Subscript) and isinstance(node.value, ast.Subscript):
        for part in [node.slice.lower, node.slice.upper] if isinstance(node.slice, ast.Slice) else [node.slice]:
            if part is None or isinstance(part, ast.Constant):
                continue
            if isinstance(part, ast.Subscript) and _is_row(part, counter, loop, view):
                others.append(part.value)
            elif not (isinstance(node.slice, ast.Slice) and isinstance(part, ast.Name) and _number(part, view)):
                return []
        if isinstance(node.slice, ast.Constant | ast.UnaryOp) or getattr(node.slice, "step", None) is not None:
            return []  # one element of a row: the others would be copied for nothing
        node = node.value
    if not isinstance(node, ast.Subscript) or not _is_row(node, counter, loop, view):
        return []
    return [node.value, *others]


def _is_row(node: ast.Subscript, counter: str, loop: ast.AST, view: FunctionView) -> bool:
    """``x[row]`` of a tensor that the passes leave alone."""
    value = view.value(node.value)
    plain = isinstance(node.slice, ast.Name) and node.slice.id == counter and pure_chain(node.value)
    return plain and value.is_tensor and not _changed_in(node.value, loop, view)


def _number(node: ast.Name, view: FunctionView) -> bool:
    """Whether a name holds a Python number."""
    return view.value(node).kind is Kind.SCALAR


def _changed_in(node: ast.expr, loop: ast.AST, view: FunctionView) -> bool:
    """Whether the passes of a loop may give an expression another value, or write into what it names."""
    if written_by(node, loop, view):
        return True
    roots = {part.id for part in ast.walk(node) if isinstance(part, ast.Name)} - {"self"}
    return any(may_write(part, root) for part in ast.walk(loop) for root in roots)
