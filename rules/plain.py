"""What surely is no tensor, told without the values of a definition: by syntax, annotations and bindings.

Most tests, bounds and indices are flags, sizes and settings. Rules ask here first: the values of a whole definition
are dear to work out, and most definitions need none.
"""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import callee
from awp_lint.rules.memo import remembered, remembered_name

#: What these hold of anything is a shape, a type, a place or a switch.
_FACTS = frozenset({"shape", "ndim", "dtype", "device", "training", "is_cuda", "requires_grad", "config"})
#: Sizes that objects keep: always numbers.
_SIZE = re.compile(
    r"(\w+_)?(head_dim|embed_dim|hidden_dim|dim|heads|groups|channels|(head|hidden|patch|embed|window)_size)"
)
_METHODS = frozenset({"size", "dim", "numel", "ndimension", "startswith", "endswith", "lower", "upper"})
_BUILTINS = frozenset({"len", "isinstance", "hasattr", "callable", "issubclass", "str", "type", "id", "range"})
_TYPES = frozenset({"int", "bool", "str", "float"})
_ASKS = frozenset({"isinstance", "is_tensor", "is_torch_tensor"})
_DEPTH = 5


@remembered
def no_tensor(node: ast.expr, view: FunctionView) -> bool:
    """Whether an expression surely is no tensor; False where only its value tells."""
    return _plain(node, view, _DEPTH)


def _plain(node: ast.expr, view: FunctionView, depth: int) -> bool:
    while isinstance(node, ast.BinOp):  # long sums are nested on their left
        if not _plain(node.right, view, depth):
            return False
        node = node.left
    if isinstance(node, ast.Constant):
        return True
    if isinstance(node, ast.Attribute):
        return node.attr in _FACTS or _SIZE.fullmatch(node.attr) is not None or _of_config(node.value)
    if isinstance(node, ast.Name):
        return depth > 0 and _bound_plainly(node.id, view, depth - 1)
    if isinstance(node, ast.Subscript):
        return _plain(node.value, view, depth)
    if isinstance(node, ast.UnaryOp):
        return isinstance(node.op, ast.Not) or _plain(node.operand, view, depth)
    if isinstance(node, ast.Compare):
        return _compares_plainly(node, view, depth)
    if isinstance(node, ast.Call):
        func = node.func
        if isinstance(func, ast.Attribute):
            return func.attr in _METHODS
        return isinstance(func, ast.Name) and func.id in _BUILTINS and not view.assignments(func.id)
    return False


def _of_config(node: ast.expr) -> bool:
    """``config``, ``self.config`` and what is below them: settings are numbers, texts and switches."""
    while isinstance(node, ast.Attribute):
        if node.attr == "config":
            return True
        node = node.value
    return isinstance(node, ast.Name) and node.id == "config"


def _compares_plainly(node: ast.Compare, view: FunctionView, depth: int) -> bool:
    sides = (node.left, *node.comparators)
    if any(isinstance(side, ast.Constant) and isinstance(side.value, str) for side in sides):
        return True
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        return False  # a container may be a tensor where the item is none
    return all(_plain(side, view, depth) for side in sides)


@remembered_name
def _bound_plainly(name: str, view: FunctionView, depth: int) -> bool:
    """Whether all that a local name is bound to is plain, its annotation as a parameter included."""
    bound, parameters = view.assignments(name), _parameters(view)
    found = bool(bound) or name in parameters
    if name in parameters:
        annotation = parameters[name]
        found = annotation is not None and _is_plain_type(annotation)
    found = found and name not in _asked_for_types(view)
    return found and all(_binds_plainly(statement, name, view, depth) for statement in bound)


def _asked_for_types(view: FunctionView) -> frozenset[str]:
    """Names that ``isinstance`` and the like are asked about: their annotations are not all that they may be."""
    known: dict[None, frozenset[str]] = view.memo.setdefault(_asked_for_types, {})
    if not known:
        calls = (call for call in view.nodes(ast.Call) if isinstance(call, ast.Call) and callee(call) in _ASKS)
        known[None] = frozenset(arg.id for call in calls for arg in call.args[:1] if isinstance(arg, ast.Name))
    return known[None]


def _parameters(view: FunctionView) -> dict[str, ast.expr | None]:
    """The annotations of a definition's parameters by their names."""
    known: dict[str, ast.expr | None] = view.memo.setdefault(_parameters, {})
    if not known and not isinstance(view.node, ast.Module):
        args = view.node.args
        known.update((arg.arg, arg.annotation) for arg in (*args.posonlyargs, *args.args, *args.kwonlyargs))
        known.update((arg.arg, None) for arg in (args.vararg, args.kwarg) if arg is not None)
    return known


def _is_plain_type(annotation: ast.expr) -> bool:
    """``int``, ``bool | None``, ``Optional[str]``."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        return _is_plain_type(annotation.left) and _is_plain_type(annotation.right)
    if isinstance(annotation, ast.Subscript):
        return (
            isinstance(annotation.value, ast.Name)
            and annotation.value.id == "Optional"
            and _is_plain_type(annotation.slice)
        )
    if isinstance(annotation, ast.Constant):
        return annotation.value is None
    return isinstance(annotation, ast.Name) and annotation.id in _TYPES


def _binds_plainly(statement: ast.stmt, name: str, view: FunctionView, depth: int) -> bool:
    if isinstance(statement, ast.For):
        return _counts(statement, name)
    if isinstance(statement, ast.AugAssign):
        return _is(statement.target, name) and _plain(statement.value, view, depth)
    if isinstance(statement, ast.AnnAssign) and statement.value is not None:
        return (
            _is(statement.target, name) and _plain(statement.value, view, depth) and not _binds(statement.value, name)
        )
    if not isinstance(statement, ast.Assign) or _binds(statement.value, name):
        return False
    for target in statement.targets:
        if _is(target, name):
            found = _plain(statement.value, view, depth)
        elif isinstance(target, ast.Tuple | ast.List) and any(_is(part, name) for part in target.elts):
            found = _unpacks_plainly(target, name, statement.value, view, depth)
        else:
            found = not _binds(target, name)
        if not found:
            return False
    return True


def _is(node: ast.expr, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name


def _binds(node: ast.expr, name: str) -> bool:
    """Whether something in an expression binds the name: a comprehension, ``:=``, a starred target."""
    return any(
        isinstance(part, ast.Name) and part.id == name and isinstance(part.ctx, ast.Store) for part in descendants(node)
    )


def _unpacks_plainly(target: ast.Tuple | ast.List, name: str, value: ast.expr, view: FunctionView, depth: int) -> bool:
    """``batch, length = x.shape``, ``a, b = 1, len(x)``."""
    if isinstance(value, ast.Tuple | ast.List) and len(value.elts) == len(target.elts):
        pairs = zip(target.elts, value.elts, strict=True)
        return all(_plain(part, view, depth) for place, part in pairs if _is(place, name))
    return _plain(value, view, depth)


def _counts(loop: ast.For, name: str) -> bool:
    """``for name in range(…)``, ``for name, x in enumerate(…)``."""
    if not (isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name)) or _binds(loop.iter, name):
        return False
    if loop.iter.func.id == "range":
        return _is(loop.target, name)
    if loop.iter.func.id == "enumerate" and isinstance(loop.target, ast.Tuple):
        first, *others = loop.target.elts
        return _is(first, name) and not any(_binds(other, name) for other in others)
    return False
