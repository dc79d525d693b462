"""Scores of tokens that are there already, made less likely one by one: gathered, changed and scattered at once."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from awp_lint.detector.finding import Effect, Fix, Safety
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import method
from awp_lint.rules.edits import fresh_name, insert_after, pure_chain, starts_line
from awp_lint.rules.nodemap import Definition

_COMPARED = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}
_CHANGED = {ast.Mult: "*", ast.Div: "/"}


@dataclass(frozen=True, slots=True)
class _Penalty:
    """``for row in range(tokens.shape[0])`` around ``for token in set(tokens[row].tolist())`` and its ``if``."""

    tokens: ast.expr
    scores: ast.expr
    test: str
    then: str
    other: str


def at_once(node: ast.AST, definition: Definition) -> Fix | None:
    """The fix for the loop over rows that a node is, or stands in."""
    view = definition.view
    loops = [node] if isinstance(node, ast.For) else [loop for loop in view.loops(node) if isinstance(loop, ast.For)]
    for loop in loops:
        found = _penalty(loop, definition)
        if found is not None:
            return _fix(loop, found, definition)
    return None


def _fix(loop: ast.For, found: _Penalty, definition: Definition) -> Fix | None:
    tokens, scores = definition.text(found.tokens), definition.text(found.scores)
    seen = fresh_name("seen", definition, loop.lineno)
    where = definition.torch_name("torch.where")
    indent = definition.indent(loop)
    lines = [
        f"{seen} = {scores}.gather(1, {tokens})",
        f"{scores}.scatter_(1, {tokens}, {where}({seen} {found.test}, {seen} {found.then}, {seen} {found.other}))",
    ]
    if not starts_line(loop, definition) or insert_after(loop, "", definition) is None:
        return None
    start, end = definition.range(loop)
    if "#" in definition.source.text[start:end]:
        return None
    return Fix(
        title=f"change all of `{scores}` at once",
        safety=Safety.UNSAFE,
        edits=(definition.replace(loop, f"{definition.source.newline}{indent}".join(lines)),),
        effects=(Effect.TIMING,),
        requires=(
            f"`{tokens}` holds whole numbers of 64 bits, none below zero, in as many rows as `{scores}`, on its device",
        ),
    )


def _penalty(loop: ast.For, definition: Definition) -> _Penalty | None:
    view = definition.view
    if loop.orelse or not isinstance(loop.target, ast.Name) or len(loop.body) != 1:
        return None
    inner = loop.body[0]
    if not isinstance(inner, ast.For) or inner.orelse or not isinstance(inner.target, ast.Name) or len(inner.body) != 1:
        return None
    row, token = loop.target.id, inner.target.id
    if any(use.lineno > (loop.end_lineno or 0) for name in (row, token) for use in view.uses(name)):
        return None
    tokens = _row_of(_listed_once(inner.iter), row)
    branch = inner.body[0]
    if tokens is None or not isinstance(branch, ast.If) or len(branch.body) != 1 or len(branch.orelse) != 1:
        return None
    test = branch.test
    if not isinstance(test, ast.Compare) or len(test.ops) != 1 or type(test.ops[0]) not in _COMPARED:
        return None
    bound, element = test.comparators[0], test.left
    if not isinstance(bound, ast.Constant) or type(bound.value) not in (int, float):
        return None
    if not (isinstance(element, ast.Subscript) and ast.unparse(element.slice) == f"({row}, {token})"):
        return None
    scores, same = element.value, ast.unparse(element)
    then, other = (_changed(part, same, {row, token}, definition) for part in (branch.body[0], branch.orelse[0]))
    if then is None or other is None or not pure_chain(scores) or not pure_chain(tokens):
        return None
    if ast.unparse(scores) == ast.unparse(tokens) or not _counts(loop.iter, (tokens, scores)):
        return None
    if not all(_batch(part, view) for part in (tokens, scores)):
        return None
    return _Penalty(tokens, scores, f"{_COMPARED[type(test.ops[0])]} {definition.text(bound)}", then, other)


def _batch(node: ast.expr, view: FunctionView) -> bool:
    """A tensor of two dimensions that does not lie on the host for certain."""
    value = view.value(node)
    return value.is_tensor and value.rank in (None, 2) and value.device is not Device.HOST


def _listed_once(node: ast.expr) -> ast.expr | None:
    """``x`` of ``set(x.tolist())``: every number once, in whatever order."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "set"):
        return None
    if len(node.args) != 1 or not isinstance(node.args[0], ast.Call):
        return None
    found = method(node.args[0])
    return found[0] if found is not None and found[1] == "tolist" and not node.args[0].args else None


def _row_of(node: ast.expr | None, row: str) -> ast.expr | None:
    plain = isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Name) and node.slice.id == row
    return node.value if isinstance(node, ast.Subscript) and plain else None


def _changed(statement: ast.stmt, element: str, names: set[str], definition: Definition) -> str | None:
    """``* penalty`` of ``scores[row, token] *= penalty``, in either spelling."""
    if isinstance(statement, ast.AugAssign) and ast.unparse(statement.target) == element:
        operator, by = statement.op, statement.value
    elif isinstance(statement, ast.Assign) and [ast.unparse(target) for target in statement.targets] == [element]:
        value = statement.value
        if not isinstance(value, ast.BinOp) or ast.unparse(value.left) != element:
            return None
        operator, by = value.op, value.right
    else:
        return None
    if type(operator) not in _CHANGED:
        return None
    # One number for all: a tensor would be a row's own, or change the type of what is written.
    constant = isinstance(by, ast.Constant) and type(by.value) in (int, float)
    known = definition.view.value(by)
    if not constant and (not pure_chain(by) or known.is_tensor):
        return None
    if any(isinstance(part, ast.Name) and part.id in names for part in ast.walk(by)):
        return None
    return f"{_CHANGED[type(operator)]} {definition.text(by)}"


def _counts(node: ast.expr, tensors: tuple[ast.expr, ...]) -> bool:
    """``range`` of the rows of one of the tensors."""
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "range"):
        return False
    if len(node.args) != 1 or node.keywords:
        return False
    said = ast.unparse(node.args[0])
    names = [ast.unparse(tensor) for tensor in tensors]
    return any(said in (f"{name}.shape[0]", f"{name}.size(0)", f"len({name})") for name in names)
