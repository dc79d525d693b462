"""A tensor that is transposed, copied flat and whose result is transposed back."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name, method

_FLAT = frozenset({"reshape", "flatten", "contiguous"})
#: Products and attention want their operands in one layout.
_LAYOUT = frozenset({
    "matmul", "bmm", "baddbmm", "einsum", "mm", "linear", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention",
    "addmm", "fold", "unfold", "stft", "istft", "interpolate",
})  # fmt: skip


def transposed_back(call: ast.Call, view: FunctionView) -> tuple[ast.expr, int] | None:
    """For the first of two transposes: what copies the tensor in between, and the line of the second."""
    name, pair = assigned_name(view, call), _pair(call)
    if name is None or pair is None or view.loops(call):
        return None
    back = _returned_back(call, pair, view)
    if back is None or _wants_layout(view):
        return None
    for use in view.uses(name):
        attribute = view.parent(use)
        if use.lineno <= call.lineno or not (isinstance(attribute, ast.Attribute) and attribute.attr in _FLAT):
            continue
        flat = view.parent(attribute)
        if isinstance(flat, ast.Call) and flat.func is attribute:
            return flat, back.lineno
    return None


def _pair(call: ast.Call) -> frozenset[int] | None:
    if len(call.args) != 2 or call.keywords or not isinstance(call.func, ast.Attribute):
        return None
    try:
        return frozenset(int(ast.literal_eval(arg)) for arg in call.args)
    except (ValueError, TypeError, SyntaxError, OverflowError):
        return None


def _returned_back(call: ast.Call, pair: frozenset[int], view: FunctionView) -> ast.Call | None:
    """The same transpose around what the definition returns."""
    for statement in view.nodes(ast.Return):
        assert isinstance(statement, ast.Return)
        value = statement.value
        if isinstance(value, ast.Call) and value is not call:
            found = method(value)
            if found is not None and found[1] == "transpose" and _pair(value) == pair:
                return value
    return None


def _wants_layout(view: FunctionView) -> bool:
    for call in view.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
        if name in _LAYOUT or view.value(call.func).kind is Kind.MODULE:
            return True
        if isinstance(call.func, ast.Attribute) and view.value(call.func.value).kind is Kind.MODULE:
            return True
    return any(isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult) for node in view.nodes(ast.BinOp))
