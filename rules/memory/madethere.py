"""Host tensors computed from counts alone, and then copied: made where they are wanted, factory by factory."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import DTypeClass, Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name, method, short
from awp_lint.rules.edits import add_keyword, pure_chain
from awp_lint.rules.flow import after, binding, version
from awp_lint.rules.memory.factories import Move, host_factory
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.hostlists import may_write

_FACTORIES = frozenset({"arange", "zeros", "ones", "full", "eye"})
#: Methods that give the same bits on every device. Division is none: devices multiply by the reciprocal of a number.
_SAME = frozenset({
    "view", "reshape", "expand", "repeat", "unsqueeze", "squeeze", "transpose", "permute", "flatten", "unflatten", "t",
    "long", "int", "float", "bool", "contiguous", "tril", "triu", "flip",
})  # fmt: skip
_NUMBERS = frozenset({"max", "min", "int", "len", "abs"})


def made_there(source: ast.expr, device: ast.expr, moved: Move | None, definition: Definition) -> Fix | None:
    """The fix that gives every factory behind ``source`` the device that it is copied to.

    ``device`` is the expression of that device, or the tensor that ``source`` is an index of (``moved`` None).
    """
    view = definition.view
    if not pure_chain(device) or (moved is not None and moved.like is not None):
        return None
    factories: list[ast.Call] = []
    chain: list[ast.Name] = []
    if not _traced(source, factories, chain, view, 8) or not factories:
        return None
    root = _root(device)
    if any(version(root, made, view) != version(root, source, view) for made in factories):
        return None
    if not all(_ends_here(name, chain, view) for name in chain):
        return None
    expanded = any(isinstance(part, ast.Call) and _expands(part) for part in _behind(source, chain, view))
    if expanded and moved is not None and _written(moved.call, view):
        return None
    code = definition.text(device) + ("" if moved is not None else ".device")
    edits = [add_keyword(made, f"device={code}", definition) for made in factories]
    if moved is not None:
        edits += _unmoved(moved, definition)
    return Fix(
        title=f"make `{short(source, 40)}` on the device",
        safety=Safety.UNSAFE,
        edits=tuple(dict.fromkeys(edits)),
        effects=(Effect.TIMING, Effect.ALIASING) if expanded and moved is not None else (Effect.TIMING,),
    )


def _behind(source: ast.expr, chain: list[ast.Name], view: FunctionView) -> Iterator[ast.AST]:
    """All nodes of an expression and of what its names hold."""
    yield from ast.walk(source)
    for name in chain:
        found = binding(name, view)
        if found is not None:
            yield from ast.walk(found[0])


def _expands(call: ast.Call) -> bool:
    """Whether a call gives a tensor of which one element stands at several places; a copy has one for each."""
    found = method(call)
    return found is not None and found[1] == "expand"


def _written(call: ast.Call, view: FunctionView) -> bool:
    """Whether somebody may write into what a call gives: all but operands, and names that nobody writes into."""
    parent = view.parent(call)
    if isinstance(parent, ast.BinOp | ast.Compare):
        return False
    name = assigned_name(view, call)
    if name is None or not isinstance(parent, ast.Assign):
        return True
    return any(may_write(part, name) for part in ast.walk(view.node))


def _traced(node: ast.expr, factories: list[ast.Call], chain: list[ast.Name], view: FunctionView, depth: int) -> bool:
    """Whether an expression is made of factories and numbers by what gives the same bits everywhere; collects both."""
    if _number(node, view):
        return True
    if isinstance(node, ast.Name):
        found = binding(node, view)
        if found is None or depth == 0 or not isinstance(found[1], ast.Assign | ast.AnnAssign):
            return False
        if isinstance(found[1], ast.Assign) and [type(target) for target in found[1].targets] != [ast.Name]:
            return False
        if any(name.id == node.id and binding(name, view) == found for name in chain):
            chain.append(node)
            return True
        chain.append(node)
        return _traced(found[0], factories, chain, view, depth - 1)
    factory = host_factory(node, view)
    if isinstance(node, ast.Call) and factory is not None:
        whole = factory != "arange" or view.value(node).dtype is DTypeClass.INT or not _says_type(node)
        given = [*node.args, *(k.value for k in node.keywords if k.arg not in ("dtype", "requires_grad"))]
        if factory not in _FACTORIES or not whole or any(view.value(part).is_tensor for part in given):
            return False
        if factory == "full" and not all(_number(part, view) for part in given):
            return False
        if factory == "arange" and any(isinstance(p, ast.Constant) and type(p.value) is not int for p in given):
            return False
        factories.append(node)
        return True
    if isinstance(node, ast.BinOp):
        exact = isinstance(node.op, ast.Add | ast.Sub | ast.Mult)
        return exact and all(_traced(part, factories, chain, view, depth) for part in (node.left, node.right))
    if isinstance(node, ast.Compare):
        return all(_traced(part, factories, chain, view, depth) for part in (node.left, *node.comparators))
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.USub | ast.Invert) and _traced(node.operand, factories, chain, view, depth)
    if isinstance(node, ast.Subscript):
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return all(_plain_index(p, view) for p in parts) and _traced(node.value, factories, chain, view, depth)
    found_method = method(node) if isinstance(node, ast.Call) else None
    if found_method is None or not isinstance(node, ast.Call) or found_method[1] not in _SAME:
        return False
    given = [*node.args, *(keyword.value for keyword in node.keywords)]
    if any(view.value(part).is_tensor for part in given):
        return False
    return _traced(found_method[0], factories, chain, view, depth)


def _says_type(call: ast.Call) -> bool:
    return any(keyword.arg == "dtype" for keyword in call.keywords)


def _number(node: ast.expr, view: FunctionView) -> bool:
    """A Python number that is known to be one."""
    if isinstance(node, ast.Constant):
        return type(node.value) in (int, float, bool)
    if isinstance(node, ast.BinOp):
        return _number(node.left, view) and _number(node.right, view)
    if isinstance(node, ast.UnaryOp):
        return _number(node.operand, view)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _NUMBERS:
        return node.func.id == "len" or (bool(node.args) and all(_number(part, view) for part in node.args))
    if isinstance(node, ast.Tuple | ast.List):
        return all(_number(part, view) for part in node.elts)
    return view.value(node).kind is Kind.SCALAR


def _plain_index(node: ast.expr, view: FunctionView) -> bool:
    if isinstance(node, ast.Slice):
        return all(part is None or _number(part, view) for part in (node.lower, node.upper, node.step))
    return (isinstance(node, ast.Constant) and node.value in (None, Ellipsis)) or _number(node, view)


def _ends_here(name: ast.Name, chain: list[ast.Name], view: FunctionView) -> bool:
    """Whether what a name of the chain holds goes nowhere else."""
    uses = view.uses(name.id)
    others = [use for use in uses if not any(use is part for part in chain)]
    if any(view.parent(use) is None for use in uses):
        return False  # in a nested function
    found = binding(name, view)
    if found is None:
        return False
    statement = found[1]
    if len(view.assignments(name.id)) == 1:
        return not others
    parent = view.parent(statement)
    if parent is None:
        return False
    for later in after(statement, parent):
        if isinstance(later, ast.Assign) and any(isinstance(t, ast.Name) and t.id == name.id for t in later.targets):
            last = later.end_lineno or later.lineno  # from here on the name holds something else
            return not any(statement.lineno < use.lineno <= last for use in others)
    return False


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def _unmoved(moved: Move, definition: Definition) -> list[Edit]:
    """Without ``.to(device)``, which has nothing to do any more; a call that casts, too, stays."""
    call = moved.call
    if not isinstance(call.func, ast.Attribute) or call.func.attr != "to" or len(call.args) + len(call.keywords) != 1:
        return []
    text = definition.source.text
    dot = text.rindex(".", 0, definition.range(call.func)[1])
    start = definition.range(moved.made)[1]
    gap = text[start:dot]
    if gap.strip(" \t\r\n)"):
        return []
    while dot > start and text[dot - 1] in " \t\r\n":
        dot -= 1
    return [Edit(dot, definition.range(call)[1], "")]
