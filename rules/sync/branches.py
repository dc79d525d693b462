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
from awp_lint.rules.edits import fresh_name, indent_of, insert_before, insert_below, pure_chain, unwrap
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.selects import (
    bracketed,
    select,
    select_either,
    select_expression,
    select_returned,
    total,
    truth,
)

_EVERY = 8  # passes between two looks at whether a loop may stop


def without_branch(node: ast.expr, definition: Definition) -> Fix | None:
    """The fix for a branch whose test (or the whole of it) is ``node``."""
    view = definition.view
    parent = view.parent(node)
    if isinstance(parent, ast.IfExp) and parent.test is node:
        return select_expression(parent, definition)
    branch = view.statement(node)
    if not isinstance(branch, ast.If):
        return None
    stopped = stop_check(branch, definition)
    if stopped is not None:
        return stopped
    if isinstance(branch.test, ast.UnaryOp) and isinstance(branch.test.op, ast.Not) and branch.test.operand is node:
        return select(branch, node, definition)
    if isinstance(branch.test, ast.BoolOp) and node in (branch.test.values[-1], _denied(branch.test.values[-1])):
        return select(branch, node, definition)
    if branch.test is not node:
        return None
    return (
        _not_none(branch, definition)
        or _raise_later(branch, definition)
        or _masked_writes(branch, definition)
        or select(branch, node, definition)
        or select_either(branch, definition)
        or select_returned(branch, definition)
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
    if "\n" in raised or not truth(branch.test, view) or len(names_in(branch.test) & {"self"}) != 0:
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
        Edit(start, end, f"{name} = {name} | {bracketed(branch.test, test)}"),
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
        return ast.unparse(first) == same and ast.unparse(old) == target.id and total(new, view)
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
