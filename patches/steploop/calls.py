"""The calls of a loop that could become graphs: which module is run, with what, and what changes from pass to pass."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.detector.semantics.values import DTypeClass, Kind
from awp_lint.patches.steploop.project import ProjectPart
from awp_lint.patches.steploop.roles import Role
from awp_lint.rules.common import short
from awp_lint.rules.graphs.growth import grown_in

Loop = ast.For | ast.While
_MODULE = "torch.nn.Module"
_NUMBERS = {"int": True, "float": False}  # whether a 0-d integer tensor can stand for it


@dataclass(frozen=True, slots=True)
class StepCall:
    """A call of a module in a loop.

    ``target`` is the ``forward`` it runs, ``roles`` are those of its parameters, ``moving`` the arguments that are
    numbers which change; ``refusal`` says why it cannot be captured, "" where nothing is known against it yet.
    """

    call: ast.Call
    target: str
    roles: tuple[tuple[str, Role], ...]
    moving: tuple[ast.expr, ...]
    refusal: str = ""


def step_calls(loop: Loop, view: FunctionModel, project: ProjectPart) -> Iterator[StepCall]:
    """The module calls in a loop's body, in source order; of calls inside one another the outermost."""
    taken: list[ast.Call] = []
    for node in _in_order(loop.body):
        if not isinstance(node, ast.Call) or any(node in ast.walk(outer) for outer in taken):
            continue
        targets = view.targets(node)
        if len(targets) != 1 or not targets[0].endswith(".forward") or targets[0] not in project.functions:
            continue
        if _MODULE not in project.functions[targets[0]][0].class_bases:
            continue
        taken.append(node)
        yield _step(node, targets[0], loop, view, project)


def _in_order(body: Sequence[ast.AST]) -> Iterator[ast.AST]:
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            continue
        yield node
        yield from _in_order(list(ast.iter_child_nodes(node)))


def _step(call: ast.Call, target: str, loop: Loop, view: FunctionModel, project: ProjectPart) -> StepCall:
    forward = project.functions[target][0].node
    assert isinstance(forward, ast.FunctionDef)
    parameters = {arg.arg: arg for arg in (*forward.args.posonlyargs, *forward.args.args, *forward.args.kwonlyargs)}
    names = [arg.arg for arg in (*forward.args.posonlyargs, *forward.args.args)][1:]
    if any(isinstance(a, ast.Starred) for a in call.args) or any(k.arg is None for k in call.keywords):
        return StepCall(call, target, (), (), "its arguments are hidden behind a star")
    given = dict(zip(names, call.args, strict=False)) | {k.arg: k.value for k in call.keywords if k.arg is not None}
    changing, grown = _changing(loop, view), grown_in(loop)
    roles: dict[str, Role] = {name: Role.FRESH for name in parameters if name not in given}
    roles.pop("self", None)
    moving: list[ast.expr] = []
    for name, argument in given.items():
        if name not in parameters:
            return StepCall(call, target, (), (), f"`{name}` is no parameter of `{target}`")
        used = {part.id for part in ast.walk(argument) if isinstance(part, ast.Name)}
        if used & grown and isinstance(argument, ast.Name):
            return StepCall(call, target, (), (), f"`{argument.id}` grows at every step")
        role, number = _role(argument, parameters[name].annotation, bool(used & changing), view, project)
        if number == "float":
            return StepCall(call, target, (), (), f"`{short(argument, 40)}` is a `float` that changes at every step")
        roles[name] = role
        if role is Role.MOVING:
            moving.append(argument)
    return StepCall(call, target, tuple(sorted(roles.items())), tuple(moving))


def _changing(loop: Loop, view: FunctionModel) -> frozenset[str]:
    """Names that the loop binds or changes, its own target included."""
    bound = {
        part.id
        for node in (*loop.body, *([loop.target] if isinstance(loop, ast.For) else []))
        for part in ast.walk(node)
        if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)
    }
    return frozenset(bound | set(view.written_in(loop)))


def _role(
    argument: ast.expr, annotation: ast.expr | None, changes: bool, view: FunctionModel, project: ProjectPart
) -> tuple[Role, str]:
    """The role of an argument, and for a number that changes its type."""
    value = view.value(argument)
    if value.is_tensor:
        return Role.INPUT, ""
    words = ast.unparse(annotation).strip("'\"") if annotation is not None else ""
    number = value.kind is Kind.SCALAR or (value.kind is Kind.UNKNOWN and words in _NUMBERS)
    if number and changes:
        whole = words == "int" or _whole(argument, view)
        return (Role.MOVING, "int") if whole else (Role.FRESH, "float")
    if number or value.kind in (Kind.NONE, Kind.STRING, Kind.DTYPE, Kind.DEVICE):
        return Role.FRESH, ""
    kept = not changes and isinstance(argument, ast.Name | ast.Attribute)
    return (Role.GIVEN if kept and not _tensors(words) else Role.INPUT), ""


def _whole(argument: ast.expr, view: FunctionModel) -> bool:
    return view.value(argument).dtype is DTypeClass.INT


def _tensors(words: str) -> bool:
    return "Tensor" in words
