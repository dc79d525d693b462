"""Which binding of a local name a use sees, and whether two expressions mean the same value.

Straight-line reasoning only: where branches or loops make it unclear which assignment arrives, the answer is that
nothing is known, never a guess.
"""

from __future__ import annotations

import ast
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.memo import remembered

#: Methods that keep the values and change the type or the layout only.
CASTS = frozenset({"float", "to", "type", "type_as", "half", "bfloat16", "double", "contiguous"})

_BLOCKS = ("body", "orelse", "finalbody", "handlers")


@dataclass(frozen=True, slots=True)
class Version:
    """One state of a local name: uses with equal versions see the same value.

    ``place`` is ``start`` (a parameter or a name from outside), ``after`` (the statement ``node`` has run) or ``head``
    (inside the loop, ``with`` or ``try`` that is ``node``, before anything below it binds the name).
    """

    place: str
    node: ast.AST | None = None


_START = Version("start")
_OPEN = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.Module, ast.If)  # entered once, from above


def version(name: str, at: ast.AST, view: FunctionView) -> Version:
    """The state of a local name where ``at`` stands, the statement of ``at`` itself left out."""
    bound = view.assignments(name)
    if not bound:
        return _START
    statement = view.statement(at)
    known = view.memo.setdefault(version, {})
    found = known.get((name, statement))
    if found is None:
        found = known[name, statement] = _version(bound, statement, view)
    return found


def _version(bound: Sequence[ast.stmt], statement: ast.stmt, view: FunctionView) -> Version:
    """``bound`` are the statements that bind the name, in source order."""
    starts = [_start(other) for other in bound]
    child: ast.AST = statement
    while True:
        parent = view.parent(child)
        if parent is None:
            return _START
        block = _block(child, parent)
        last = bisect_left(starts, _start(child)) - 1
        if block is not None and last >= 0 and starts[last] >= _start(block[0]):
            return Version("after", block[bisect_right(block, starts[last], key=_start) - 1])
        if not isinstance(parent, _OPEN):
            first, end = _span(parent)
            nearest = bisect_left(starts, first)
            if nearest < len(starts) and starts[nearest] <= end:
                return Version("head", parent)
        elif isinstance(parent, ast.If) and any(other is parent for other in bound):
            return Version("head", parent)  # `if (name := …):`
        child = parent


def _block(child: ast.AST, parent: ast.AST) -> list[ast.stmt] | None:
    """The block of ``parent`` that ``child`` stands in."""
    for field in _BLOCKS:
        block = getattr(parent, field, None)
        if isinstance(block, list) and any(statement is child for statement in block):
            return block
    return None


def before(child: ast.AST, parent: ast.AST) -> Sequence[ast.stmt]:
    """The statements of the same block that stand before ``child``."""
    block = _block(child, parent)
    return () if block is None else block[: next(i for i, statement in enumerate(block) if statement is child)]


def after(child: ast.AST, parent: ast.AST) -> Sequence[ast.stmt]:
    """The statements of the same block that stand after ``child``."""
    block = _block(child, parent)
    return () if block is None else block[1 + next(i for i, statement in enumerate(block) if statement is child) :]


def _start(node: ast.AST) -> tuple[int, int]:
    return getattr(node, "lineno", 0), getattr(node, "col_offset", 0)


def _span(node: ast.AST) -> tuple[tuple[int, int], tuple[int, int]]:
    return _start(node), (getattr(node, "end_lineno", 0) or 0, getattr(node, "end_col_offset", 0) or 0)


@remembered
def binding(node: ast.expr, view: FunctionView) -> tuple[ast.expr, ast.stmt] | None:
    """What a local name was last assigned, and the statement that did it; None where that is not one plain assignment.

    Of ``a, b = x, y`` the part that belongs to the name.
    """
    if not isinstance(node, ast.Name):
        return None
    found = version(node.id, node, view)
    statement = found.node
    if found.place != "after":
        return None
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return (statement.value, statement) if isinstance(statement.target, ast.Name) else None
    if not isinstance(statement, ast.Assign):
        return None
    for target in statement.targets:
        if isinstance(target, ast.Name) and target.id == node.id:
            return statement.value, statement
        if isinstance(target, ast.Tuple) and isinstance(statement.value, ast.Tuple):
            if len(target.elts) != len(statement.value.elts):
                continue
            for part, value in zip(target.elts, statement.value.elts, strict=True):
                if isinstance(part, ast.Name) and part.id == node.id:
                    return value, statement
    return None


def resolve(node: ast.expr, view: FunctionView, depth: int = 6) -> ast.expr:
    """The expression behind a name, as far as plain assignments lead. Anything else stays as it is."""
    while depth > 0:
        found = binding(node, view)
        if found is None:
            return node
        node, depth = found[0], depth - 1
    return node


def uncast(node: ast.expr) -> ast.expr:
    """The expression without casts, moves and ``contiguous`` around it."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in CASTS:
        node = node.func.value
    return node


def origins(node: ast.expr, view: FunctionView, depth: int = 6) -> Iterator[ast.expr]:
    """The expression and what stands behind it, casts taken off and names followed, outermost first."""
    seen = node
    yield seen
    while depth > 0:
        inner = uncast(seen)
        found = binding(inner, view)
        if found is not None:
            inner = found[0]
        if inner is seen:
            return
        seen, depth = inner, depth - 1
        yield seen


def same(a: ast.expr, b: ast.expr, view: FunctionView) -> bool:
    """Whether two expressions mean the same value, casts and plain assignments seen through."""
    for left in origins(a, view):
        for right in origins(b, view):
            if left is right or _equal(left, right, view):
                return True
    return False


def _equal(a: ast.AST, b: ast.AST, view: FunctionView) -> bool:
    """Structural equality of pure expressions, with every name in the same state at both places."""
    if type(a) is not type(b):
        return False
    if isinstance(a, ast.Name) and isinstance(b, ast.Name):
        return a.id == b.id and version(a.id, a, view) == version(b.id, b, view)
    if isinstance(a, ast.Constant) and isinstance(b, ast.Constant):
        return type(a.value) is type(b.value) and a.value == b.value
    if isinstance(a, ast.Call) and not _pure(a):
        return False
    for (name, left), (other, right) in zip(ast.iter_fields(a), ast.iter_fields(b), strict=False):
        if name != other:
            return False
        if name == "ctx":
            continue
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            for x, y in zip(left, right, strict=True):
                if not (_equal(x, y, view) if isinstance(x, ast.AST) else x == y):
                    return False
        elif isinstance(left, ast.AST) and isinstance(right, ast.AST):
            if not _equal(left, right, view):
                return False
        elif left != right:
            return False
    return True


_PURE = frozenset({
    "size", "dim", "numel", "chunk", "split", "view", "reshape", "transpose", "permute", "unsqueeze", "squeeze",
    "float", "to", "half", "bfloat16", "type_as", "contiguous", "detach", "mean", "sum", "pow", "square", "exp",
    "log", "sqrt", "rsqrt", "abs", "max", "amax", "softmax", "sigmoid", "tanh", "var", "std",
})  # fmt: skip


def _pure(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    return name in _PURE


def names_between(first: ast.stmt, last: ast.stmt, view: FunctionView) -> Sequence[ast.stmt] | None:
    """The statements of one block from after ``first`` up to and without ``last``; None where they share no block."""
    parent = view.parent(first)
    if parent is None or parent is not view.parent(last):
        return None
    following = after(first, parent)
    for index, statement in enumerate(following):
        if statement is last:
            return following[:index]
    return None
