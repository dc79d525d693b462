"""Python lists, arrays and host tensors as an index of a device tensor: the indexing copies them to the device."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Value
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import assigned_name, callee, host_named, names_in, target_names
from awp_lint.rules.plain import no_tensor

_IDS = re.compile(r"(^|_)(tokens|token_ids|ids|indices|words)$")
_LIST_OF_INT = re.compile(r"^(typing\.)?(List|list|Sequence)\[int\]")
_ROWS = re.compile(r"(^|_)(logits?|scores?|probs?|mask|bias)(_processed)?$")


def index_words() -> tuple[bytes, ...]:
    """What a file must hold for :func:`host_index` to find something."""
    return (b"tokens", b"ids", b"indices", b"idx", b"index", b"words", b"keep", b"rows")


def host_index(node: ast.Subscript, view: FunctionView) -> ast.expr | None:
    """The part of an index that comes from the host and holds many positions; None for any other subscript.

    Numbers, slices and device tensors are none. What is not known counts where it is named for token ids and picks
    columns of a row of scores in a loop over Python objects.
    """
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    told = [part for part in parts if not isinstance(part, ast.Slice | ast.Constant | ast.Starred)]
    told = [part for part in told if not no_tensor(part, view)]
    base = view.value(node.value) if told else None
    if base is None or not base.on_device or base.certainty is Certainty.UNKNOWN or isinstance(node.ctx, ast.Del):
        return None
    for part in told:
        value = view.value(part)
        if _from_host(part, value, view) or (value.kind is Kind.UNKNOWN and _named_ids(node, parts, part, view)):
            return part
    return None


def _from_host(part: ast.expr, value: Value, view: FunctionView) -> bool:
    if isinstance(part, ast.List):
        return _numbers(part, view)
    if value.certainty is Certainty.UNKNOWN:
        return False
    if value.kind is Kind.NDARRAY:
        return value.rank != 0
    if value.kind is Kind.SEQUENCE:
        return isinstance(part, ast.Name) and _is_list(part, view)
    if value.is_tensor and value.device is Device.HOST:
        return value.rank != 0 and value.dtype is DTypeClass.INT and not value.constant
    return False


def _is_list(name: ast.Name, view: FunctionView) -> bool:
    """Whether a name holds a list of numbers: a tuple, or a list of slices made one, indexes several dimensions."""
    bound = view.assignments(name.id)
    if not bound:
        annotations = [arg.annotation for arg in ast.walk(view.node) if isinstance(arg, ast.arg) and arg.arg == name.id]
        return any(note is not None and _LIST_OF_INT.search(ast.unparse(note)) for note in annotations)
    return all(_makes_list(statement, name.id, view) for statement in bound)


def _makes_list(statement: ast.stmt, name: str, view: FunctionView) -> bool:
    if isinstance(statement, ast.For):
        item = next((n for n in ast.walk(statement.target) if isinstance(n, ast.Name) and n.id == name), None)
        element = view.value(item).element if item is not None else None
        return element is not None and element.kind is Kind.SCALAR
    value = statement.value if isinstance(statement, ast.Assign | ast.AnnAssign) else None
    if isinstance(value, ast.BinOp) and isinstance(value.op, ast.Mult):
        value = value.left
    if isinstance(value, ast.List):
        return not value.elts or _numbers(value, view)
    if isinstance(value, ast.ListComp):
        return _number(value.elt, view)
    if isinstance(value, ast.Call) and callee(value) in ("list", "tolist", "sorted"):
        element = view.value(value).element
        return element is not None and element.kind is Kind.SCALAR
    return False


def _numbers(node: ast.List, view: FunctionView) -> bool:
    return bool(node.elts) and all(_number(e, view) for e in node.elts)


def _number(node: ast.expr, view: FunctionView) -> bool:
    value = view.value(node)
    if value.kind is Kind.UNKNOWN and isinstance(node, ast.Attribute):
        return node.attr.endswith(("index", "idx", "position"))  # a counter that starts as None
    return value.kind is Kind.SCALAR and not isinstance(node, ast.Starred)


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
