"""Forms of code that the walk through a step knows: ends and places in buffers, counted positions, checks, masks."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence

from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.patches.steploop.roles import Role, Roles
from awp_lint.rules.common import callee


def parameters(node: ast.FunctionDef) -> Iterator[ast.arg]:
    yield from (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)
    yield from (arg for arg in (node.args.vararg, node.args.kwarg) if arg is not None)


def inside(node: ast.FunctionDef, view: FunctionModel) -> Iterator[ast.AST]:
    """The nodes of the function's own body in source order; nested functions are not run by it."""
    pending: list[ast.AST] = [*reversed(node.body)]
    while pending:
        part = pending.pop()
        if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        yield part
        pending += reversed(list(ast.iter_child_nodes(part)))


def loaded(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load)


def called(node: ast.expr) -> ast.expr:
    return node.func if isinstance(node, ast.Call) else node


def only_ends(statement: ast.Assign, view: FunctionModel, roles: Roles) -> bool:
    """Whether all that a name is bound for is to end slices: ``x[:, :end]``."""
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Name) or len(view.assignments(target.id)) != 1:
        return False
    uses = view.uses(target.id)
    for use in uses:
        slice_ = view.parent(use)
        if not (isinstance(slice_, ast.Slice) and slice_.upper is use and opens(slice_, view, roles)):
            return False
    return bool(uses)


def opens(node: ast.Slice, view: FunctionModel, roles: Roles) -> bool:
    """Whether a slice reads a kept buffer, or a mask, from its start on."""
    if node.lower is not None or node.step is not None:
        return False
    holder = view.parent(node)
    while isinstance(holder, ast.Tuple):
        holder = view.parent(holder)
    if not (isinstance(holder, ast.Subscript) and isinstance(holder.ctx, ast.Load)):
        return False
    return roles.of(holder.value) in (Role.OUTER, Role.GIVEN) or "mask" in ast.unparse(holder.value)


def cut_to_length(node: ast.Subscript) -> bool:
    """``mask[..., : keys.shape[2]]``: the last dimension is cut to the length of another tensor."""
    last = node.slice.elts[-1] if isinstance(node.slice, ast.Tuple) and node.slice.elts else node.slice
    if not (isinstance(last, ast.Slice) and last.lower is None and last.upper is not None):
        return False
    upper = last.upper
    if isinstance(upper, ast.Subscript) and isinstance(upper.value, ast.Attribute):
        return upper.value.attr == "shape"
    return isinstance(upper, ast.Call) and callee(upper) == "size"


def masks(node: ast.Subscript, view: FunctionModel) -> bool:
    """Whether a tensor is added to scores, or handed over as a mask."""
    parent = view.parent(node)
    if isinstance(parent, ast.keyword):
        return "mask" in (parent.arg or "")
    return (isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Add)) or "mask" in ast.unparse(node.value)


def counted(call: ast.Call, roles: Roles) -> tuple[ast.expr, ast.expr, Sequence[ast.keyword]] | None:
    """Start, count and keywords of ``torch.arange(start, start + count)`` with a start that changes."""
    if callee(call) != "arange" or len(call.args) != 2 or not isinstance(call.args[1], ast.BinOp):
        return None
    start, end = call.args
    assert isinstance(end, ast.BinOp)
    if not isinstance(end.op, ast.Add) or roles.of(start) is not Role.MOVING:
        return None
    count = _rest(start, end)
    if count is None or roles.of(count) is Role.MOVING:
        return None
    if any(keyword.arg not in ("device", "dtype") for keyword in call.keywords):
        return None
    return start, count, call.keywords


def span(node: ast.Slice, view: FunctionModel, roles: Roles) -> tuple[ast.expr, ast.expr] | None:
    """Start and count of ``x[:, start : start + count]``, all other indices being whole slices."""
    if node.lower is None or node.step is not None or not isinstance(node.upper, ast.BinOp):
        return None
    count = _rest(node.lower, node.upper) if isinstance(node.upper.op, ast.Add) else None
    if count is None or roles.of(count) is Role.MOVING or roles.of(node.lower) is not Role.MOVING:
        return None
    holder = view.parent(node)
    parts = holder.elts if isinstance(holder, ast.Tuple) else [node]
    whole = all(isinstance(part, ast.Slice) or _whole_index(part) for part in parts)
    return (node.lower, count) if whole else None


def _whole_index(part: ast.expr) -> bool:
    return isinstance(part, ast.Constant) and part.value in (..., None)


def _rest(start: ast.expr, end: ast.BinOp) -> ast.expr | None:
    """``count`` of ``start + count``."""
    text = ast.dump(start)
    if ast.dump(end.left) == text:
        return end.right
    return end.left if ast.dump(end.right) == text else None


def guard(node: ast.expr, view: FunctionModel) -> ast.If | ast.Assert | None:
    """The check around a number that does nothing but raise."""
    parent: ast.AST | None = view.parent(node)
    while isinstance(parent, ast.expr):
        parent = view.parent(parent)
    if isinstance(parent, ast.Assert):
        return parent
    if (
        isinstance(parent, ast.If)
        and not parent.orelse
        and len(parent.body) == 1
        and isinstance(parent.body[0], ast.Raise)
    ):
        return parent
    return None
