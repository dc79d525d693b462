"""What a condition says about the values on the branch that it guards."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.interpret.annotations import annotated
from awp_lint.detector.semantics.interpret.machine import NONE, Machine
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, DTypeClass, Kind, Value, make

_ANY = DTypeClass.UNKNOWN
# Kinds that one class covers as a whole, so that "not an instance of it" excludes the kind.
_WHOLE = frozenset({Kind.TENSOR, Kind.SCALAR, Kind.STRING, Kind.MAPPING, Kind.NDARRAY})


def _slot(m: Machine, node: ast.expr) -> str | None:
    """The environment's key of a name or ``self.x``."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == m.self_name:
        return "self." + node.attr
    return None


def assume(m: Machine, test: ast.expr, truth: bool) -> None:
    """Narrow the current environment (already a copy) by a condition that was true or false."""
    kind = test.__class__
    if kind is ast.UnaryOp:
        assert isinstance(test, ast.UnaryOp)
        if isinstance(test.op, ast.Not):
            assume(m, test.operand, not truth)
    elif kind is ast.BoolOp:
        assert isinstance(test, ast.BoolOp)
        if isinstance(test.op, ast.And) is truth:
            for part in test.values:
                assume(m, part, truth)
    elif kind is ast.Compare:
        assert isinstance(test, ast.Compare)
        _comparison(m, test, truth)
    elif kind is ast.Call:
        assert isinstance(test, ast.Call)
        _check(m, test, truth)


def _comparison(m: Machine, test: ast.Compare, truth: bool) -> None:
    if len(test.ops) != 1:
        return
    right = test.comparators[0]
    if not is_none(right):
        return
    name = _slot(m, test.left)
    if name is None:
        return
    if isinstance(test.ops[0], ast.Is | ast.Eq) is truth:
        m.env[name] = NONE
    elif m.env.get(name, UNKNOWN).kind is Kind.NONE:
        m.env[name] = UNKNOWN


def _check(m: Machine, test: ast.Call, truth: bool) -> None:
    function = test.func
    short = (
        function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else ""
    )
    if short == "isinstance" and len(test.args) == 2:
        name = _slot(m, test.args[0])
        if name is not None:
            _narrow(m, name, _classes(m, test.args[1]), truth)
    elif short in ("is_tensor", "is_torch_tensor") and test.args:
        name = _slot(m, test.args[0])
        if name is not None:
            _narrow(m, name, [annotated(m, ast.Name(id="Tensor"))], truth)


def _classes(m: Machine, node: ast.expr) -> list[Value]:
    if isinstance(node, ast.Tuple):
        return [v for part in node.elts for v in _classes(m, part)]
    if isinstance(node, ast.BinOp):
        return [*_classes(m, node.left), *_classes(m, node.right)]
    return [annotated(m, node)]


def _another(value: Value) -> bool:
    """Whether the code itself shows that a value is of another class: the branch is there for traced or other calls."""
    if value.kind is Kind.SEQUENCE:
        return value.certainty is not Certainty.UNKNOWN
    return value.kind in (Kind.SCALAR, Kind.STRING) and value.certainty is Certainty.PROVEN


def _doubted(value: Value) -> Value:
    return make(value.kind, value.device, value.dtype, cls=value.cls, element=value.element)


def _narrow(m: Machine, name: str, classes: list[Value], truth: bool) -> None:
    value = m.env.get(name, UNKNOWN)
    kinds = {c.kind for c in classes}
    if truth:
        if value.kind in kinds and value.kind is not Kind.UNKNOWN:
            return
        if len(kinds) == 1:
            m.env[name] = _doubted(classes[0]) if _another(value) else classes[0]
        else:
            m.env[name] = UNKNOWN
    elif value.kind in _WHOLE and any(c.kind is value.kind and c.dtype in (value.dtype, _ANY) for c in classes):
        m.env[name] = UNKNOWN
