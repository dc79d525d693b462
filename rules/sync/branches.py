"""Branches on device values that can be written without asking for the value, or asking for it less often."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.values import DTypeClass, Kind
from awp_lint.detector.semantics.view import FunctionView, LoopKind
from awp_lint.rules.common import callee, names_in, short
from awp_lint.rules.doubts import mixed, optional_names, reaches_into
from awp_lint.rules.edits import fresh_name, indent_of, insert_before, insert_below, pure_chain, unwrap
from awp_lint.rules.flow import version
from awp_lint.rules.nodemap import Definition

_EVERY = 8  # passes between two looks at whether a loop may stop

#: Calls on tensors without effects, that give a value whatever the tensors hold.
_TOTAL = frozenset({
    "abs", "add", "addcmul", "clamp", "clamp_max", "clamp_min", "contiguous", "cos", "detach", "div", "exp", "expand",
    "expand_as", "float", "half", "bfloat16", "double", "long", "int", "bool", "isfinite", "isinf", "isnan", "lerp",
    "log", "log1p", "log_softmax", "masked_fill", "maximum", "mean", "minimum", "mul", "nan_to_num", "neg", "norm",
    "pow", "reciprocal", "relu", "round", "rsqrt", "sigmoid", "silu", "sin", "softmax", "sqrt", "square", "std", "sub",
    "sum", "tanh", "to", "type", "type_as", "unsqueeze", "var", "vector_norm", "where", "zeros_like", "ones_like",
    "full_like", "finfo", "iinfo",
})  # fmt: skip


def without_branch(node: ast.expr, definition: Definition) -> Fix | None:
    """The fix for a branch whose test (or the whole of it) is ``node``."""
    view = definition.view
    parent = view.parent(node)
    if isinstance(parent, ast.IfExp) and parent.test is node:
        return _select_expression(parent, definition)
    branch = view.statement(node)
    if not isinstance(branch, ast.If):
        return None
    stopped = stop_check(branch, definition)
    if stopped is not None:
        return stopped
    if isinstance(branch.test, ast.UnaryOp) and isinstance(branch.test.op, ast.Not) and branch.test.operand is node:
        return _select(branch, node, definition)
    if isinstance(branch.test, ast.BoolOp) and node in (branch.test.values[-1], _denied(branch.test.values[-1])):
        return _select(branch, node, definition)
    if branch.test is not node:
        return None
    return (
        _not_none(branch, definition)
        or _raise_later(branch, definition)
        or _masked_writes(branch, definition)
        or _select(branch, node, definition)
        or _select_either(branch, definition)
    )


def _denied(node: ast.expr) -> ast.expr | None:
    """What a ``not`` denies."""
    return node.operand if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not) else None


def stop_check(branch: ast.If, definition: Definition) -> Fix | None:
    """``if finished.all(): break`` in a counted loop: look at every few passes only."""
    view = definition.view
    if branch.orelse or len(branch.body) != 1 or not isinstance(branch.body[0], ast.Break):
        return None
    loop = next(iter(view.loops(branch)), None)
    if not isinstance(loop, ast.For) or view.loop_kind(loop) not in (LoopKind.TOKENS, LoopKind.STEPS) or loop.orelse:
        return None
    if view.parent(branch) is not loop:
        return None
    counter = loop.target
    if isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "enumerate":
        counter = counter.elts[0] if isinstance(counter, ast.Tuple) and counter.elts else counter
    elif not (
        isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name) and loop.iter.func.id == "range"
    ):
        return None
    if not isinstance(counter, ast.Name):
        return None
    edits: list[Edit] = []
    name = counter.id
    if name.startswith("_") and not view.uses(name):
        name = fresh_name("step", definition, loop.lineno)
        edits.append(definition.replace(counter, name))
    test = definition.text(branch.test)
    code = f"({test})" if isinstance(branch.test, ast.BoolOp | ast.IfExp | ast.NamedExpr) or "\n" in test else test
    edits.append(definition.replace(branch.test, f"{name} % {_EVERY} == {_EVERY - 1} and {code}"))
    return Fix(
        title=f"look at `{short(branch.test, 40)}` at every {_EVERY}th pass only",
        safety=Safety.UNSAFE,
        edits=tuple(edits),
        effects=(Effect.TIMING, Effect.STRUCTURE),
        requires=(f"up to {_EVERY - 1} passes after the end only add padding that nobody minds",),
    )


def _not_none(branch: ast.If, definition: Definition) -> Fix | None:
    """``if guidance:`` of an optional tensor argument asks whether it was given."""
    test, view = branch.test, definition.view
    if not isinstance(test, ast.Name) or isinstance(view.node, ast.Lambda | ast.Module):
        return None
    if not all(_still_optional(statement, test.id) for statement in view.assignments(test.id)):
        return None
    arguments = view.node.args
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(plain), reversed(arguments.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    for argument, default in pairs:
        said = ast.unparse(argument.annotation) if argument.annotation is not None else ""
        if argument.arg == test.id and is_none(default):
            if "Tensor" not in said or re.search(r"\b(bool|int|float|list|List|tuple|Tuple)\b", said):
                return None  # a flag or a list may be given, too
            return Fix(
                title=f"ask whether `{test.id}` was given, not for its value",
                safety=Safety.UNSAFE,
                edits=(definition.replace(test, f"{test.id} is not None"),),
                effects=(Effect.TIMING,),
                requires=(f"no caller passes a zero as `{test.id}` to switch it off",),
            )
    return None


def _still_optional(statement: ast.stmt, name: str) -> bool:
    """Whether an assignment leaves a given argument given: a value computed from it, or None."""
    if not isinstance(statement, ast.Assign):
        return False
    value = statement.value
    return is_none(value) or (isinstance(value, ast.Call | ast.BinOp) and name in names_in(value))


def _raise_later(branch: ast.If, definition: Definition) -> Fix | None:
    """An error check in a loop: collect the answer on the device, raise behind the loop."""
    view = definition.view
    if branch.orelse or len(branch.body) != 1 or not isinstance(branch.body[0], ast.Raise):
        return None
    loop = next(iter(view.loops(branch)), None)
    if not isinstance(loop, ast.For | ast.While) or any(
        isinstance(part, ast.Return | ast.Yield | ast.YieldFrom | ast.Await | ast.Try) for part in ast.walk(loop)
    ):
        return None
    raised = definition.text(branch.body[0])
    if "\n" in raised or not _truth(branch.test, view) or len(names_in(branch.test) & {"self"}) != 0:
        return None
    name = fresh_name("failed", definition, branch.lineno)
    test = definition.text(branch.test)
    inner = indent_of(branch.body[0], definition).removeprefix(indent_of(branch, definition))
    if branch.body[0].lineno == branch.lineno or not inner.isspace():
        return None
    start, end = definition.range(branch)
    if definition.source.text.startswith("elif", start):
        return None
    edits = [
        insert_before(loop, [f"{name} = False"], definition),
        Edit(start, end, f"{name} = {name} | {_bracketed(branch.test, test)}"),
        insert_below(loop, [f"if {name}:", f"{inner}{raised}"], definition),
    ]
    if None in edits:
        return None
    return Fix(
        title=f"check `{short(branch.test, 40)}` once, behind the loop",
        safety=Safety.UNSAFE,
        edits=tuple(edit for edit in edits if edit is not None),
        effects=(Effect.TIMING,),
        requires=("the error may come after the loop, with what its message names as the last pass left it",),
    )


def _masked_writes(branch: ast.If, definition: Definition) -> Fix | None:
    """``if mask.any():`` around writes through that mask alone, which do nothing where it is empty."""
    test = branch.test
    if not (isinstance(test, ast.Call) and isinstance(test.func, ast.Attribute) and test.func.attr == "any"):
        return None
    mask = test.func.value
    if definition.view.qualified(test.func) == "torch.any" and len(test.args) == 1:
        mask = test.args[0]
    elif test.args or test.keywords:
        return None
    if not pure_chain(mask) or definition.view.value(mask).dtype is not DTypeClass.BOOL:
        return None
    if not all(_no_op_without(statement, mask, definition.view) for statement in branch.body):
        return None
    edit = unwrap(branch, definition)
    if edit is None:
        return None
    return Fix(
        title=f"write through `{short(mask, 40)}` without asking whether it is empty",
        safety=Safety.UNSAFE,
        edits=(edit,),
        effects=(Effect.TIMING, Effect.ALIASING),
    )


def _no_op_without(statement: ast.stmt, mask: ast.expr, view: FunctionView) -> bool:
    """Whether a statement changes no value where the mask holds nowhere."""
    same = ast.unparse(mask)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        call = statement.value
        return (
            callee(call) == "masked_fill_" and bool(call.args) and ast.unparse(call.args[0]) == same
            and isinstance(call.func, ast.Attribute) and pure_chain(call.func.value) and _plain(call.args[1:], view)
        )  # fmt: skip
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return False
    target, value = statement.targets[0], statement.value
    if isinstance(target, ast.Subscript):
        return ast.unparse(target.slice) == same and pure_chain(target.value) and _plain([value], view)
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call):
        return False
    if view.qualified(value.func) == "torch.where" and len(value.args) == 3:
        first, new, old = value.args
        return ast.unparse(first) == same and ast.unparse(old) == target.id and _total(new, view)
    return (
        callee(value) == "masked_fill" and isinstance(value.func, ast.Attribute)
        and ast.unparse(value.func.value) == target.id and len(value.args) == 2
        and ast.unparse(value.args[0]) == same and _plain(value.args[1:], view)
    )  # fmt: skip


def _plain(values: Sequence[ast.expr], view: FunctionView) -> bool:
    return all(
        isinstance(value, ast.Constant) or view.value(value).kind is Kind.SCALAR or view.value(value).rank == 0
        for value in values
    )


def _select(branch: ast.If, test: ast.expr, definition: Definition) -> Fix | None:
    """A branch that gives one local tensor a new value: compute it always and select on the device.

    ``test`` is the branch's test, what ``not`` denies in it, or the last part of an ``and`` whose others are flags.
    """
    view = definition.view
    if branch.orelse or not _truth(test, view):
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
        if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not _total(statement.value, view):
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
    if not _tensor(chosen.value, view) or not view.value(target).is_tensor:
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


def _select_either(branch: ast.If, definition: Definition) -> Fix | None:
    """``if c: x = a`` with ``else: x = b``."""
    view = definition.view
    if len(branch.body) != 1 or len(branch.orelse) != 1 or not _truth(branch.test, view):
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


def _select_expression(node: ast.IfExp, definition: Definition) -> Fix | None:
    """``a if c else b`` of two tensors."""
    if not _truth(node.test, definition.view):
        return None
    code = _where(node.test, node.body, node.orelse, definition)
    return None if code is None else _selected(node.test, node, [definition.replace(node, code)], definition)


def _where(test: ast.expr, one: ast.expr, other: ast.expr, definition: Definition) -> str | None:
    view = definition.view
    for part in (one, other):
        if not _total(part, view) or not view.value(part).is_tensor or "\n" in definition.text(part):
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


def _truth(test: ast.expr, view: FunctionView) -> bool:
    """A test that is one tensor of type bool, not a chain of questions."""
    if isinstance(test, ast.BoolOp | ast.UnaryOp | ast.NamedExpr):
        return False
    if isinstance(test, ast.Compare) and len(test.ops) > 1:
        return False
    value = view.value(test)
    return value.is_tensor and value.dtype is DTypeClass.BOOL and not mixed(test, view)


def _total(node: ast.expr, view: FunctionView) -> bool:
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


def _tensor(node: ast.expr, view: FunctionView) -> bool:
    """Whether an expression gives a tensor: by its value, or since it is a call of torch that gives nothing else."""
    if view.value(node).is_tensor:
        return True
    return (
        isinstance(node, ast.Call) and callee(node) in _TOTAL and view.qualified(node.func) == f"torch.{callee(node)}"
    )


def _bracketed(node: ast.expr, code: str) -> str:
    atom = isinstance(node, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return code if atom and "\n" not in code else f"({code})"
