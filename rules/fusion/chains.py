"""Chains of elementwise operations: how many kernels run one after the other that a compiler would fuse."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from awp_lint.detector.semantics.values import Device, DTypeClass, Value
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import callee, names_in, target_names

_OPERATORS = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.Pow, ast.FloorDiv, ast.Mod, ast.BitAnd, ast.BitOr, ast.BitXor)
_ELEMENTWISE = frozenset({
    "abs", "add", "sub", "mul", "div", "pow", "square", "sqrt", "rsqrt", "exp", "log", "log1p", "expm1", "sin", "cos",
    "tanh", "sigmoid", "relu", "clamp", "clip", "clamp_min", "clamp_max", "where", "maximum", "minimum", "neg",
    "reciprocal", "floor", "ceil", "round", "sign", "erf", "lerp", "addcmul", "addcdiv", "masked_fill", "logical_and",
    "logical_or", "logical_not", "eq", "ne", "gt", "lt", "ge", "le", "silu", "gelu", "softplus", "mish", "hardswish",
    "leaky_relu", "elu", "atan2", "fmod", "remainder", "sinh", "cosh", "tan", "atan", "nan_to_num", "true_divide",
})  # fmt: skip

_BLOCKS = ("body", "orelse", "finalbody")
_COMPUTING = (ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Return)


@dataclass(slots=True)
class Chain:
    """Statements of one block that pass tensors on to each other by elementwise operations only."""

    statements: list[ast.stmt] = field(default_factory=list)
    operations: list[ast.expr] = field(default_factory=list)
    names: set[str] = field(default_factory=set)  # what it has bound so far


def chains(body: Sequence[ast.stmt], view: FunctionView) -> Iterator[Chain]:
    """The chains of a block, and of the blocks inside it."""
    current = Chain()
    for statement in body:
        for field_name in _BLOCKS:
            inner = getattr(statement, field_name, None)
            if isinstance(inner, list) and not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                yield from chains(inner, view)
        operations = _operations(statement, view)
        if operations is None:
            if current.operations:
                yield current
            current = Chain()
            continue
        reads = names_in(statement)
        if current.operations and operations and not reads & current.names:
            yield current
            current = Chain()
        current.statements.append(statement)
        current.operations += operations
        if isinstance(statement, ast.Assign):
            for target in statement.targets:
                current.names |= target_names(target)
        elif isinstance(statement, ast.AugAssign | ast.AnnAssign):
            current.names |= target_names(statement.target)
    if current.operations:
        yield current


def long_enough(body: Sequence[ast.stmt], view: FunctionView, least: int) -> bool:
    """Whether a chain of that many operations can be there, by the syntax alone: most functions have none, and what
    their expressions are need not be asked."""
    operators = view.nodes(ast.BinOp, ast.UnaryOp, ast.Compare, ast.AugAssign)
    calls = [call for call in view.nodes(ast.Call) if may_be_elementwise(call)]
    if len(operators) + len(calls) < least:
        return False
    held = Counter(view.statement(node) for node in (*operators, *calls))
    blocks = [body]
    while blocks:
        run = 0
        for statement in blocks.pop():
            if not isinstance(statement, ast.FunctionDef | ast.ClassDef):
                blocks += [block for name in _BLOCKS if isinstance(block := getattr(statement, name, None), list)]
            run = run + held[statement] if isinstance(statement, _COMPUTING) else 0
            if run >= least:
                return True
    return False


def _operations(statement: ast.stmt, view: FunctionView) -> list[ast.expr] | None:
    """The elementwise launches of a statement; None where it does something else as well."""
    if not isinstance(statement, _COMPUTING) or statement.value is None:
        return None
    value = statement.value
    found: list[ast.expr] = []
    if isinstance(statement, ast.AugAssign) and isinstance(statement.op, _OPERATORS):
        if not isinstance(statement.target, ast.Name):
            return None
        if _tensor(view.value(value)):
            found.append(value)
    return found if _collect(value, view, found) else None


def _collect(node: ast.expr, view: FunctionView, found: list[ast.expr]) -> bool:
    """Add the launches below a node; False where something is no elementwise operation, view or plain value."""
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        if isinstance(node, ast.BinOp) and not isinstance(node.op, _OPERATORS):
            return False
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            return False
        operands = [node.left, node.right] if isinstance(node, ast.BinOp) else []
        if isinstance(node, ast.UnaryOp):
            operands = [node.operand]
        elif isinstance(node, ast.Compare):
            operands = [node.left, *node.comparators]
        if _tensor(view.value(node)):
            found.append(node)
        return all(_collect(part, view, found) for part in operands)
    if isinstance(node, ast.Call):
        name = callee(node).rstrip("_")
        value = view.value(node)
        if not value.is_tensor:
            return value.on_host  # sizes, numbers
        parts = [*node.args, *(k.value for k in node.keywords)]
        if isinstance(node.func, ast.Attribute) and view.value(node.func.value).is_tensor:
            parts.append(node.func.value)
        if name in _ELEMENTWISE:
            if _tensor(value):
                found.append(node)
        elif name not in _VIEWS:
            return False
        return all(_collect(part, view, found) for part in parts)
    if isinstance(node, ast.Subscript):
        return isinstance(node.slice, ast.Constant | ast.Slice | ast.Tuple) and _collect(node.value, view, found)
    if isinstance(node, ast.Tuple):
        return all(_collect(part, view, found) for part in node.elts)
    return isinstance(node, ast.Name | ast.Attribute | ast.Constant)


def elementwise_only(statement: ast.stmt, view: FunctionView) -> bool:
    """Whether a statement computes by elementwise operations, views and sizes, and does nothing else."""
    return _operations(statement, view) is not None


def may_be_elementwise(call: ast.AST) -> bool:
    """Whether a call is, by its name, an elementwise operation."""
    return isinstance(call, ast.Call) and callee(call).rstrip("_") in _ELEMENTWISE


_VIEWS = frozenset({
    "unsqueeze", "squeeze", "view", "expand", "expand_as", "transpose", "permute", "to", "float", "half", "bfloat16",
    "type_as", "chunk", "unbind", "unflatten", "flatten", "reshape", "detach", "t", "split",
})  # fmt: skip


def _tensor(value: Value) -> bool:
    """A tensor of numbers with dimensions that is not known to live on the host."""
    if value.dtype in (DTypeClass.INT, DTypeClass.BOOL):
        return False  # lengths and masks: small, and not what a fused kernel is for
    return value.is_tensor and value.device is not Device.HOST and value.rank != 0
