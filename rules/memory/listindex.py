"""Python lists, arrays and host tensors as an index of a device tensor: the indexing copies them to the device."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Value
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name, host_named, names_in, target_names

_IDS = re.compile(r"(^|_)(tokens|token_ids|ids|indices|words)$")
_ROWS = re.compile(r"(^|_)(logits?|scores?|probs?|mask|bias)(_processed)?$")


def index_words() -> tuple[bytes, ...]:
    """What a file must hold for :func:`host_index` to find something."""
    return (b"tokens", b"ids", b"indices", b"idx", b"index", b"words", b"keep", b"rows")


def host_index(node: ast.Subscript, view: FunctionView) -> ast.expr | None:
    """The part of an index that comes from the host and holds many positions; None for any other subscript.

    Numbers, slices and device tensors are none. What is not known counts where it is named for token ids and picks
    columns of a row of scores in a loop over Python objects.
    """
    base = view.value(node.value)
    if not base.on_device or base.certainty is Certainty.UNKNOWN or isinstance(node.ctx, ast.Del):
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    for part in parts:
        if isinstance(part, ast.Slice | ast.Constant | ast.Starred):
            continue
        value = view.value(part)
        if _from_host(part, value) or (value.kind is Kind.UNKNOWN and _named_ids(node, parts, part, view)):
            return part
    return None


def _from_host(part: ast.expr, value: Value) -> bool:
    if isinstance(part, ast.List):
        return not any(isinstance(e, ast.Starred) for e in part.elts) and bool(part.elts)
    if value.certainty is Certainty.UNKNOWN:
        return False
    if value.kind is Kind.NDARRAY:
        return value.rank != 0
    if value.kind is Kind.SEQUENCE:
        # a tuple is an index of several dimensions, and so may be what holds slices
        element = value.element
        return value.items is None and element is not None and element.kind is Kind.SCALAR
    if value.is_tensor and value.device is Device.HOST:
        return value.rank != 0 and value.dtype is DTypeClass.INT and not value.constant
    return False


def _named_ids(node: ast.Subscript, parts: list[ast.expr], part: ast.expr, view: FunctionView) -> bool:
    """``scores[i, banned_tokens]`` in a loop whose items are host objects that give the ids."""
    if len(parts) != 2 or part is not parts[1] or not isinstance(part, ast.Name) or not _IDS.search(part.id):
        return False
    if not isinstance(parts[0], ast.Name) or not _ROWS.search(_last(node.value)) or host_named(node):
        return False
    loop = next(iter(view.loops(node)), None)
    if not isinstance(loop, ast.For) or parts[0].id not in target_names(loop.target):
        return False
    if part.id in target_names(loop.target):
        return not any(view.value(e).is_tensor for e in ast.walk(loop.iter) if isinstance(e, ast.Name))
    for statement in view.assignments(part.id):
        if not isinstance(statement, ast.Assign) or loop not in view.loops(statement.value):
            return False
        if not isinstance(statement.value, ast.Call | ast.Attribute) or assigned_name(view, statement.value) is None:
            return False
        if any(view.value(e).is_tensor for e in ast.walk(statement.value) if isinstance(e, ast.expr)):
            return False
        if not names_in(statement.value) & target_names(loop.target):
            return False
    return bool(view.assignments(part.id))


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
