"""Branches that give one of two tensors: both are computed, and one is selected on the device."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import DTypeClass
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import callee, names_in, short
from awp_lint.rules.doubts import mixed, optional_names, reaches_into
from awp_lint.rules.edits import unwrap
from awp_lint.rules.flow import version
from awp_lint.rules.nodemap import Definition

#: Calls on tensors without effects, that give a value whatever the tensors hold.
_TOTAL = frozenset({
    "abs", "add", "addcmul", "clamp", "clamp_max", "clamp_min", "contiguous", "cos", "detach", "div", "exp", "expand",
    "expand_as", "float", "half", "bfloat16", "double", "long", "int", "bool", "isfinite", "isinf", "isnan", "lerp",
    "log", "log1p", "log_softmax", "masked_fill", "maximum", "mean", "minimum", "mul", "nan_to_num", "neg", "norm",
    "pow", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "silu", "sin", "softmax", "sqrt", "square", "std", "sub",
    "sum", "tanh", "to", "type", "type_as", "unsqueeze", "var", "vector_norm", "where", "zeros_like", "ones_like",
    "full_like", "finfo", "iinfo",
})  # fmt: skip


def select(branch: ast.If, test: ast.expr, definition: Definition) -> Fix | None:
    """A branch that gives one local tensor a new value: compute it always and select on the device.

    ``test`` is the branch's test, what ``not`` denies in it, or the last part of an ``and`` whose others are flags.
    """
    view = definition.view
    if branch.orelse or not truth(test, view):
        return None
    flags: list[ast.expr] = []
    if isinstance(branch.test, ast.BoolOp):
        flags = branch.test.values[:-1]
        if not isinstance(branch.test.op, ast.And) or any(not view.value(f).on_host for f in flags):
            return None
    inside = {id(part) for statement in branch.body for part in ast.walk(statement)}
    bound: set[str] = set()
    chosen: ast.Assign | None = None
    for statement in branch.body:
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not total(statement.value, view):
            return None
        target = statement.targets[0]
        if not isinstance(target, ast.Name) or target.id in bound:
            return None
        bound.add(target.id)
        if all(id(use) in inside for use in view.uses(target.id)) and view.assignments(target.id) == [statement]:
            continue  # serves the branch alone
        if chosen is not None:
            return None
        chosen = statement
    if chosen is None:
        return None
    target = chosen.targets[0]
    assert isinstance(target, ast.Name)
    if names_in(test) & (bound - {target.id} if chosen is branch.body[-1] else bound):
        return None  # the test would see what the branch has bound before it
    if version(target.id, branch, view).place == "start" and target.id not in _parameters(view):
        return None
    if not tensor(chosen.value, view) or not view.value(target).is_tensor:
        return None
    if not _alike(chosen.value, target, view):
        return None
    where = definition.torch_name("torch.where")
    one, other = definition.text(chosen.value), target.id
    last_part = branch.test.values[-1] if isinstance(branch.test, ast.BoolOp) else branch.test
    if isinstance(last_part, ast.UnaryOp):
        one, other = other, one
    selected = definition.replace(chosen.value, f"{where}({definition.text(test)}, {one}, {other})")
    if not flags:
        return _selected(test, target, [unwrap(branch, definition, [selected])], definition)
    start, end = definition.range(flags[0])[0], definition.range(flags[-1])[1]
    source = definition.source.text
    last = definition.range(test)[1]
    if source[end:last].count("\n") or source[last : last + 1] != ":" or not source[:start].endswith("if "):
        return None  # brackets or line breaks among the parts
    return _selected(test, target, [Edit(end, last, ""), selected], definition)


def select_either(branch: ast.If, definition: Definition) -> Fix | None:
    """``if c: x = a`` with ``else: x = b``."""
    view = definition.view
    if len(branch.body) != 1 or len(branch.orelse) != 1 or not truth(branch.test, view):
        return None
    one, other = branch.body[0], branch.orelse[0]
    if not isinstance(one, ast.Assign) or not isinstance(other, ast.Assign):
        return None
    if len(one.targets) != 1 or not isinstance(one.targets[0], ast.Name):
        return None
    if len(other.targets) != 1 or ast.unparse(other.targets[0]) != one.targets[0].id:
        return None
    start, end = definition.range(branch)
    if definition.source.text.startswith("elif", start) or "#" in definition.source.text[start:end]:
        return None
    code = _where(branch.test, one.value, other.value, definition)
    if code is None:
        return None
    return _selected(branch.test, one.targets[0], [Edit(start, end, f"{one.targets[0].id} = {code}")], definition)


def select_returned(branch: ast.If, definition: Definition) -> Fix | None:
    """``if c: return a`` above ``return b``, or with it in its ``else``."""
    view = definition.view
    if len(branch.body) != 1 or not isinstance(one := branch.body[0], ast.Return) or not truth(branch.test, view):
        return None
    parent = view.parent(branch)
    blocks: list[list[ast.stmt]] = [b for b in (getattr(parent, "body", None), getattr(parent, "orelse", None)) if b]
    behind = branch.orelse or [s for block in blocks if branch in block for s in block[block.index(branch) + 1 :]]
    if len(behind) != 1 or not isinstance(other := behind[0], ast.Return):
        return None
    start, end = definition.range(branch)[0], definition.range(other)[1]
    if definition.source.text.startswith("elif", start) or "#" in definition.source.text[start:end]:
        return None
    if one.value is None or other.value is None:
        return None
    code = _where(branch.test, one.value, other.value, definition)
    if code is None:
        return None
    return _selected(branch.test, one.value, [Edit(start, end, f"return {code}")], definition)


def select_expression(node: ast.IfExp, definition: Definition) -> Fix | None:
    """``a if c else b`` of two tensors."""
    if not truth(node.test, definition.view):
        return None
    code = _where(node.test, node.body, node.orelse, definition)
    return None if code is None else _selected(node.test, node, [definition.replace(node, code)], definition)


def _where(test: ast.expr, one: ast.expr, other: ast.expr, definition: Definition) -> str | None:
    view = definition.view
    for part in (one, other):
        if not total(part, view) or not view.value(part).is_tensor or "\n" in definition.text(part):
            return None
    if not _alike(one, other, view):
        return None
    parts = ", ".join(map(definition.text, (test, one, other)))
    return f"{definition.torch_name('torch.where')}({parts})"


def _selected(test: ast.expr, what: ast.expr, edits: Sequence[Edit | None], definition: Definition) -> Fix | None:
    if None in edits:
        return None
    return Fix(
        title=f"select by `{short(test, 40)}` on the device",
        safety=Safety.UNSAFE,
        edits=tuple(edit for edit in edits if edit is not None),
        effects=(Effect.TIMING, Effect.ALIASING, Effect.MEMORY),
        requires=(f"`{short(what, 40)}` has the same shape and type either way",),
    )


def _alike(one: ast.expr, other: ast.expr, view: FunctionView) -> bool:
    """Whether two values may have the same shape: neither is cut out of something, and no rank says otherwise."""
    cut = any(isinstance(part, ast.Subscript) for value in (one, other) for part in ast.walk(value))
    ranks = {view.value(value).rank for value in (one, other)} - {None}
    return not cut and len(ranks) < 2


def _parameters(view: FunctionView) -> frozenset[str]:
    if isinstance(view.node, ast.Module):
        return frozenset()
    arguments = view.node.args
    return frozenset(a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs))


def truth(test: ast.expr, view: FunctionView) -> bool:
    """A test that is one tensor of type bool, not a chain of questions."""
    if isinstance(test, ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
        return False
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        return False
    value = view.value(test)
    return value.is_tensor and value.dtype is DTypeClass.BOOL and not mixed(test, view)


def total(node: ast.expr, view: FunctionView) -> bool:
    """Whether an expression has no effects and gives a value whatever the tensors in it hold."""
    if reaches_into(node, optional_names(view)):
        return False
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Call):
            name = callee(part)
            if name not in _TOTAL or any(isinstance(a, ast.Starred) for a in part.args):
                return False
            if isinstance(part.func, ast.Attribute):
                dotted = view.qualified(part.func) or ""
                if not dotted.startswith("torch.") and not view.value(part.func.value).is_tensor:
                    return False
                stack.append(part.func.value)
            elif not (view.qualified(part.func) or "").startswith("torch."):
                return False
            stack += [*part.args, *(k.value for k in part.keywords)]
        elif isinstance(part, ast.Subscript):
            if any(view.value(i).is_tensor for i in ast.walk(part.slice) if isinstance(i, ast.expr)):
                return False
            stack.append(part.value)
        elif isinstance(part, ast.Name | ast.Constant):
            continue
        elif isinstance(part, ast.Attribute | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Tuple | ast.List):
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
                return False
            stack += [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
        else:
            return False
    return True


def tensor(node: ast.expr, view: FunctionView) -> bool:
    """Whether an expression gives a tensor: by its value, or since it is a call of torch that gives nothing else."""
    if view.value(node).is_tensor:
        return True
    return (
        isinstance(node, ast.Call) and callee(node) in _TOTAL and view.qualified(node.func) == f"torch.{callee(node)}"
    )


def bracketed(node: ast.expr, code: str) -> str:
    """Code of an expression as an operand: in brackets unless it holds together by itself."""
    atom = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return code if atom and "\n" not in code else f"({code})"
