"""A loop over all experts, each of which looks for its rows: gone through for those alone that some row chose."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import callee, method, names_in
from awp_lint.rules.edits import indent_of, pure_chain, starts_line, written
from awp_lint.rules.flow import binding, version
from awp_lint.rules.nodemap import Definition

#: Writes into rows that an index names; an index without rows leaves everything as it is.
_ROWS_PUT = frozenset({"index_add_", "index_copy_", "index_fill_", "index_put_", "index_reduce_"})
#: Of what ``where`` or ``nonzero`` gives: another shape of the same places.
_SHAPED = frozenset({"squeeze", "flatten", "view", "reshape", "unbind"})


@dataclass(frozen=True, slots=True)
class _Header:
    """``for number in range(…)`` or ``for number, expert in enumerate(experts)``."""

    number: str
    expert: str | None
    experts: ast.expr | None


def chosen_alone(loop: ast.AST, definition: Definition) -> Fix | None:
    """The fix for a loop over experts, or None where a pass for an expert without rows might do anything."""
    if not isinstance(loop, ast.For) or loop.orelse or not loop.body:
        return None
    view = definition.view
    header = _header(loop)
    if header is None or loop.body[0].lineno == loop.lineno or not starts_line(loop.body[0], definition):
        return None
    found = _places(loop.body[0], header.number, view)
    if found is None:
        return None
    selected, places = found
    value = view.value(selected)
    if not value.is_tensor or value.device is Device.HOST or not pure_chain(selected):
        return None
    if not all(_idle_without(statement, places) for statement in loop.body[1:]) or _lasting(loop, header, view):
        return None
    name = next(part.id for part in ast.walk(selected) if isinstance(part, ast.Name))
    if version(name, loop.body[0], view) != version(name, loop, view) or name in written(loop):
        return None
    chosen, start = definition.text(selected), definition.range(loop.target)[0]
    stop = definition.range(loop.iter)[1]
    if "#" in definition.source.text[start:stop] or "\n" in definition.source.text[start:stop]:
        return None
    edits = [
        definition.replace(loop.target, header.number),
        definition.replace(loop.iter, f"{chosen}.unique().tolist()"),
    ]
    of = "an expert"
    if header.expert is not None and header.experts is not None:
        experts = definition.text(header.experts)
        of = f"one of `{experts}`"
        place = definition.source.line_starts[loop.body[0].lineno - 1]
        line = f"{indent_of(loop.body[0], definition)}{header.expert} = {experts}[{header.number}]"
        edits.append(Edit(place, place, line + definition.source.newline))
    return Fix(
        title="go through the experts that were chosen, and no others",
        safety=Safety.UNSAFE,
        edits=tuple(edits),
        effects=(Effect.TIMING,),
        requires=(
            f"every value of `{chosen}` is the number of {of} that the loop goes through",
            "what a pass calls changes nothing where it is given no rows",
        ),
    )


def _header(loop: ast.For) -> _Header | None:
    call, target = loop.iter, loop.target
    if not (isinstance(call, ast.Call) and len(call.args) == 1 and not call.keywords):
        return None
    if callee(call) == "range" and isinstance(target, ast.Name):
        return _Header(target.id, None, None)
    if callee(call) != "enumerate" or not isinstance(target, ast.Tuple) or len(target.elts) != 2:
        return None
    number, expert = target.elts
    if isinstance(number, ast.Name) and isinstance(expert, ast.Name) and pure_chain(call.args[0]):
        return _Header(number.id, expert.id, call.args[0])
    return None


def _places(statement: ast.stmt, number: str, view: FunctionView) -> tuple[ast.expr, frozenset[str]] | None:
    """What is compared with the expert's number, and the names of the places where it is the same."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return None
    target = statement.targets[0]
    names = target.elts if isinstance(target, ast.Tuple) else [target]
    if not all(isinstance(name, ast.Name) for name in names):
        return None
    asked = _asked(statement.value, view)
    if asked is None:
        return None
    selected = _compared(asked, number) or _one_hot(asked, number, view)
    if selected is None:
        return None
    return selected, frozenset(name.id for name in names if isinstance(name, ast.Name))


def _asked(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """The condition of ``torch.where(condition)`` or ``condition.nonzero()``, shaped in whatever way."""
    while True:
        if isinstance(node, ast.Subscript):
            node = node.value
            continue
        if not isinstance(node, ast.Call):
            return None
        if view.qualified(node.func) in ("torch.where", "torch.nonzero") and len(node.args) == 1:
            return node.args[0]
        found = method(node)
        if found is None:
            return None
        if found[1] == "nonzero" and not node.args:
            return found[0]
        if found[1] not in _SHAPED:
            return None
        node = found[0]


def _compared(node: ast.expr, number: str) -> ast.expr | None:
    """``selected`` of ``selected == number``."""
    if not (isinstance(node, ast.Compare) and len(node.ops) == 1 and isinstance(node.ops[0], ast.Eq)):
        return None
    sides = [node.left, node.comparators[0]]
    others = [side for side in sides if not (isinstance(side, ast.Name) and side.id == number)]
    return others[0] if len(others) == 1 and number not in names_in(others[0]) else None


def _one_hot(node: ast.expr, number: str, view: FunctionView) -> ast.expr | None:
    """``selected`` of ``mask[number]`` where ``mask = one_hot(selected, …).permute(2, 1, 0)``."""
    if not isinstance(node, ast.Subscript) or not (isinstance(node.slice, ast.Name) and node.slice.id == number):
        return None
    bound = binding(node.value, view)
    if bound is None or not isinstance(bound[0], ast.Call):
        return None
    found = method(bound[0])
    if found is None or found[1] != "permute" or [ast.unparse(arg) for arg in bound[0].args] != ["2", "1", "0"]:
        return None
    call = found[0]
    if not (isinstance(call, ast.Call) and (callee(call) or "").endswith("one_hot") and call.args):
        return None
    selected = call.args[0]
    if not pure_chain(selected):
        return None
    name = next(part.id for part in ast.walk(selected) if isinstance(part, ast.Name))
    return selected if version(name, node, view) == version(name, bound[1], view) else None


def _idle_without(statement: ast.stmt, places: frozenset[str]) -> bool:
    """Whether a statement of a pass does nothing that lasts where there are no places."""
    if any(isinstance(part, ast.Await | ast.Yield | ast.YieldFrom | ast.NamedExpr) for part in ast.walk(statement)):
        return False
    if isinstance(statement, ast.If):
        return not statement.orelse and all(isinstance(s, ast.Continue) for s in statement.body)
    if isinstance(statement, ast.Assign):
        return all(_own(target, places) for target in statement.targets)
    if isinstance(statement, ast.AugAssign):
        return isinstance(statement.target, ast.Subscript) and _own(statement.target, places)
    if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call):
        found = method(statement.value)
        if found is None or found[1] not in _ROWS_PUT:
            return False
        arguments = [*statement.value.args, *(keyword.value for keyword in statement.value.keywords)]
        return any(isinstance(arg, ast.Name) and arg.id in places for arg in arguments)
    return False


def _own(target: ast.expr, places: frozenset[str]) -> bool:
    """A name of the pass, or rows at the places."""
    if isinstance(target, ast.Tuple):
        return all(isinstance(part, ast.Name) for part in target.elts)
    if isinstance(target, ast.Subscript):
        return bool(names_in(target.slice) & places)
    return isinstance(target, ast.Name)


def _lasting(loop: ast.For, header: _Header, view: FunctionView) -> bool:
    """Whether a name that the loop binds is read outside it, or in it before its pass has bound it."""
    first = {name: -1 for name in (header.number, header.expert) if name is not None}
    for index, statement in enumerate(loop.body):
        for part in ast.walk(statement):
            if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store):
                first.setdefault(part.id, index)
    for name, bound in first.items():
        inside = {
            part
            for statement in loop.body[bound + 1 :]
            for part in ast.walk(statement)
            if isinstance(part, ast.Name) and part.id == name
        }
        if any(use not in inside for use in view.uses(name)):
            return True
    return False
