"""A value that is no longer read by the host stays a tensor: whoever uses it must be able to take one.

Dropping `.item()` is right where the number only meets tensors in arithmetic. Where it is returned, formatted, used as
an index or handed to a function, a tensor in its place would fail, or change what the caller gets.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator

from awp_lint.detector.finding import Span
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.patches.llm.rows import Function

_READS = frozenset(("item", "tolist", "numpy", "cpu", "int", "float", "bool"))


def read_faults(old: Function, new: Function, span: Span, view: FunctionView) -> list[str]:
    """Where the host value that the new function does not read any more was used as such."""
    if not _reads(old) - _reads(new):
        return []
    found = []
    for node in ast.walk(old):
        inside = isinstance(node, ast.Call) and span.line <= node.lineno <= span.end_line
        if inside and _called(node) in _READS:
            for use in _uses(node, view):
                if not _meets_tensor(use, view):
                    line = getattr(use, "lineno", span.line)
                    found.append(f"line {line} may need the number itself, which is a tensor now")
    return list(dict.fromkeys(found))


def _called(node: ast.AST) -> str:
    func = getattr(node, "func", None)
    return func.attr if isinstance(func, ast.Attribute) else func.id if isinstance(func, ast.Name) else ""


def _reads(function: Function) -> Counter[str]:
    return Counter(name for node in ast.walk(function) if (name := _called(node)) in _READS)


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
