"""A value that is no longer read by the host stays a tensor: whoever uses it must be able to take one.

Dropping `.item()` is right where the number only meets tensors in arithmetic. Where it is returned, formatted, used as
an index or handed to a function, a tensor in its place would fail, or change what the caller gets. It is right as well
where the number now comes from a read of many at once. What is no longer copied by `.cpu()` may stay on the device
where only PyTorch works on it, and nothing from the host with it, until it is read.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from awp_lint.detector.finding import Span
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.patches.llm.rows import Function, Row, rows

_METHODS = frozenset(("item", "tolist", "numpy", "cpu"))
_BUILTINS = frozenset(("int", "float", "bool"))  # as functions: the tensor's methods of these names read nothing
_ENDS = frozenset(("item", "tolist", "cpu"))  # reads that a device tensor takes as well as a host tensor
_PLAIN = (Kind.SCALAR, Kind.STRING, Kind.NONE, Kind.DTYPE)
_FAR = 12  # uses of uses that are followed


def read_faults(old: Function, new: Function, span: Span, view: FunctionView) -> list[str]:
    """Where the host value that the new function does not read any more was used as such."""
    if not _reads(old) - _reads(new):
        return []
    found = []
    for node in ast.walk(old):
        if not isinstance(node, ast.Call) or not _read(node) or not span.line <= node.lineno <= span.end_line:
            continue
        if _read(node) != "cpu" and _number_instead(node, old, new):
            continue
        for use in _uses(node, view):
            fine = _stays(use, view, _FAR) if _read(node) == "cpu" else _meets_tensor(use, view)
            if not fine:
                line = getattr(use, "lineno", span.line)
                found.append(f"line {line} may need the number itself, which is a tensor now")
    return list(dict.fromkeys(found))


def _read(node: ast.AST) -> str:
    """The name of the read that a call is, "" where it is none."""
    func = getattr(node, "func", None)
    if isinstance(func, ast.Attribute) and func.attr in _METHODS:
        return func.attr
    return func.id if isinstance(func, ast.Name) and func.id in _BUILTINS else ""


def _reads(function: Function) -> Counter[str]:
    return Counter(name for node in ast.walk(function) if (name := _read(node)))


def _uses(read: ast.AST, view: FunctionView) -> Iterator[ast.AST]:
    """The read itself where it stands in an expression, else the uses of the name that it is bound to."""
    parent = view.parent(read)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        yield from view.uses(parent.targets[0].id)
        return
    yield read


def _meets_tensor(node: ast.AST, view: FunctionView) -> bool:
    """Whether a value is an operand together with a tensor: a tensor in its place gives the same."""
    parent = view.parent(node)
    if isinstance(parent, ast.UnaryOp):
        return _meets_tensor(parent, view)
    if isinstance(parent, ast.BinOp):
        other = parent.right if parent.left is node else parent.left
        return view.value(other).is_tensor
    return False


# numbers that come from one read of many -----------------------------------------------------------------------------


def _number_instead(read: ast.Call, old: Function, new: Function) -> bool:
    """Whether the row that takes the place of the read's row uses a number that the new function has read."""
    before, after = rows(old), rows(new)
    kept = {row.key for row in before}
    place = next((row for row in before if any(read is n for part in row.parts for n in ast.walk(part))), None)
    if place is None:
        return False
    fresh = [row for row in after if row.key not in kept and (row.kind, row.path) == (place.kind, place.path)]
    numbers = _numbers(new)
    wanted = _stored(place)
    return any(_stored(row) == wanted and numbers & _loaded(row) for row in fresh)


def _numbers(function: Function) -> set[str]:
    """Names that only ever hold numbers (or lists of them) which the function has read from a tensor."""
    bound = Counter(n.id for n in ast.walk(function) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store))
    found: set[str] = set()
    for row in rows(function):
        (target, value), *_ = [*_bindings(row), (None, None)]
        if target is None or value is None:
            continue
        for name, source in _pairs(target, value):
            is_read = _read(source) not in ("", "cpu", "numpy")
            if bound[name] == 1 and (is_read or (isinstance(source, ast.Name) and source.id in found)):
                found.add(name)
    return found


def _bindings(row: Row) -> Iterator[tuple[ast.expr, ast.expr]]:
    if row.kind == "For":
        target, iterated = row.parts
        assert isinstance(target, ast.expr) and isinstance(iterated, ast.expr)
        yield target, iterated
    (node, *_) = [*row.parts, None]
    if isinstance(node, ast.Assign) and len(node.targets) == 1:
        yield node.targets[0], node.value


def _pairs(target: ast.expr, value: ast.expr) -> Iterator[tuple[str, ast.expr]]:
    """Names, and what each is bound to or, in a loop, taken from: `zip` and `enumerate` by place."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple):
        parts: list[ast.expr | None] = [value] * len(target.elts)
        if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
            if value.func.id == "zip":
                parts = [*value.args] if len(value.args) == len(target.elts) else []
            elif value.func.id == "enumerate" and value.args:
                parts = [None, value.args[0]]
        for one, part in zip(target.elts, parts, strict=False):
            if part is not None:
                yield from _pairs(one, part)


def _loaded(row: Row) -> set[str]:
    return _named(row, ast.Load)


def _stored(row: Row) -> set[str]:
    return _named(row, ast.Store)


def _named(row: Row, context: type[ast.expr_context]) -> set[str]:
    return {n.id for p in row.parts for n in ast.walk(p) if isinstance(n, ast.Name) and isinstance(n.ctx, context)}


# tensors that stay where they are ------------------------------------------------------------------------------------


def _stays(node: ast.AST, view: FunctionView, far: int) -> bool:
    """Whether all that becomes of a tensor is PyTorch's work on it alone, or a read: it may be on the device then."""
    parent = view.parent(node)
    if far == 0 or parent is None:
        return False
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1:
        names = list(_names_of(parent.targets[0]))
        return bool(names) and all(_stays(use, view, far - 1) for name in names for use in view.uses(name))
    if isinstance(parent, ast.Attribute):
        call = view.parent(parent)
        if not isinstance(call, ast.Call) or call.func is not parent:
            return parent.attr in ("shape", "dtype", "ndim", "device")
        if parent.attr in _ENDS:
            return True
        return parent.attr not in ("numpy", "to") and _alone(call, view) and _stays(call, view, far - 1)
    if isinstance(parent, ast.Call) and node in parent.args:
        name = view.qualified(parent.func) or ""
        return name.startswith("torch.") and _alone(parent, view, node) and _stays(parent, view, far - 1)
    return False


def _alone(call: ast.Call, view: FunctionView, node: ast.AST | None = None) -> bool:
    """Whether no other argument of a call could be a tensor."""
    others = (*call.args, *(keyword.value for keyword in call.keywords))
    return all(isinstance(one, ast.Constant) or view.value(one).kind in _PLAIN for one in others if one is not node)


def _names_of(target: ast.expr) -> Iterator[str]:
    for node in ast.walk(target):
        if isinstance(node, ast.Name):
            yield node.id
        elif not isinstance(node, ast.Tuple | ast.List | ast.expr_context):
            return
