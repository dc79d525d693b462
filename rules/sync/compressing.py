"""Tensors that are cut down to the rows of a mask: ``boxes = boxes[keep]``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.semantics.view import FunctionView

_WHOLE = frozenset({"all", "any"})


def compresses(statement: ast.stmt | None, mask: ast.expr, view: FunctionView) -> bool:
    """Whether a statement stands where a test has just asked for this mask, and nothing but cuts by it stands there.

    ``if not keep.all(): boxes, scores = boxes[keep], scores[keep]`` asks in order not to copy what mostly stays as it
    is; what is behind the test finds the device idle.
    """
    branch = view.parent(statement) if statement is not None else None
    return isinstance(branch, ast.If) and statement in branch.body and _asks_before_cutting(branch, mask)


def asks_before_cutting(tested: ast.expr, view: FunctionView) -> bool:
    """Whether what is tested is such a test."""
    parent = view.parent(tested)
    if isinstance(parent, ast.UnaryOp):
        parent = view.parent(parent)
    mask = _asked(tested)
    return isinstance(parent, ast.If) and mask is not None and _asks_before_cutting(parent, mask)


def _asks_before_cutting(branch: ast.If, mask: ast.expr) -> bool:
    test = branch.test.operand if isinstance(branch.test, ast.UnaryOp) else branch.test
    asked = _asked(test)
    if asked is None or branch.orelse or ast.dump(asked) != ast.dump(mask):
        return False
    for statement in branch.body:
        found = list(cuts(statement))
        if not found or any(ast.dump(cut.slice) != ast.dump(mask) for _, cut in found):
            return False
    return True


def _asked(test: ast.expr) -> ast.expr | None:
    """``keep`` of ``keep.all()`` and ``torch.all(keep)``."""
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr in _WHOLE):
        return None
    if not test.args:
        return test.func.value
    return test.args[0] if len(test.args) == 1 and not test.keywords else None


def cuts(statement: ast.stmt) -> Iterator[tuple[str, ast.Subscript]]:
    """The names of ``a, b = a[m], b[m]``, with what each gets; nothing where something else is assigned."""
    if not (isinstance(statement, ast.Assign) and len(statement.targets) == 1):
        return
    target, value = statement.targets[0], statement.value
    several = isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple) and len(target.elts) == len(value.elts)
    pairs = zip(target.elts, value.elts, strict=True) if several else [(target, value)]  # type: ignore[attr-defined]
    found = [
        (name.id, cut)
        for name, cut in pairs
        if isinstance(name, ast.Name) and isinstance(cut, ast.Subscript) and ast.unparse(cut.value) == name.id
    ]
    if len(found) == (len(target.elts) if several else 1):  # type: ignore[attr-defined]
        yield from found
