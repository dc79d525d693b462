"""A loop that decides by its own results how long it runs: done on the host, to which its few rows are brought once."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import callee, method, open_ended
from awp_lint.rules.edits import fresh_name, insert_before, written
from awp_lint.rules.nodemap import Definition

#: Calls whose work on some hundred rows is done on the host before a device has begun it, and that keep to the place
#: of what they are given.
_LIGHT = frozenset({
    "abs", "add", "all", "amax", "amin", "any", "append", "arange", "argmax", "argmin", "argsort", "bool", "cat",
    "clamp", "clamp_max", "clamp_min", "clip", "clone", "cummax", "cumsum", "diff", "div", "empty", "eq", "expand",
    "expand_as", "extend", "flatten", "flip", "float", "full", "full_like", "gather", "ge", "gt", "index_select",
    "int", "isin", "item", "le", "logical_and", "logical_not", "logical_or", "long", "lt", "masked_fill", "max",
    "maximum", "mean", "min", "minimum", "mul", "ne", "new_empty", "new_full", "new_ones", "new_tensor", "new_zeros",
    "nonzero", "numel", "ones", "ones_like", "permute", "pop", "prod", "relu", "repeat", "reshape", "round", "select",
    "size", "sort", "split", "sqrt", "squeeze", "stack", "sub", "sum", "t", "tensor", "tolist", "topk", "transpose",
    "unbind", "unsqueeze", "view", "where", "zeros", "zeros_like",
})  # fmt: skip
_BUILTINS = frozenset({
    "abs", "bool", "enumerate", "float", "int", "isinstance", "len", "list", "max", "min", "range", "reversed",
    "sorted", "sum", "tuple", "zip",
})  # fmt: skip
_ELSEWHERE = (ast.Yield, ast.YieldFrom, ast.Await, ast.With, ast.FunctionDef, ast.Lambda, ast.Global, ast.Nonlocal)


def on_host(node: ast.AST, definition: Definition) -> Fix | None:
    """The fix for a wait in a ``while`` loop, or None where the function holds more than such work on its arguments."""
    view = definition.view
    function = view.node
    if not isinstance(function, ast.FunctionDef) or not open_ended(view, node):
        return None
    body = function.body[1:] if ast.get_docstring(function) is not None else function.body
    tensors = _tensors(function, view)
    if not tensors or not body:
        return None
    helpers = _helpers(body, view)
    if (
        helpers is None
        or any(name in tensors for statement in body for name in written(statement))
        or not _closed(body, function, view)
    ):
        return None
    device = fresh_name("origin", definition, function.lineno)
    returned = _returned(body, device, tensors, definition)
    brought = f"{', '.join(tensors)} = {', '.join(f'{name}.cpu()' for name in tensors)}"
    first = insert_before(body[0], [f"{device} = {tensors[0]}.device", brought], definition)
    if returned is None or first is None:
        return None
    few = f"{_listed(tensors)} {'is' if len(tensors) == 1 else 'are'} small: the host is done with a pass of the loop"
    requires = [f"{few} before a device has begun it"]
    requires += (
        [f"{_listed(helpers)} work{'s' if len(helpers) == 1 else ''} where the arguments lie"] if helpers else []
    )
    return Fix(
        title="work on the host, where no pass of the loop waits",
        safety=Safety.UNSAFE,
        edits=(first, *returned),
        effects=(Effect.TIMING, Effect.NUMERICS),  # sums in another order
        requires=tuple(requires),
    )


def _tensors(function: ast.FunctionDef, view: FunctionView) -> list[str]:
    """The parameters that are tensors and not on the host; none where one may be missing."""
    arguments = function.args
    if arguments.vararg or arguments.kwarg or function.decorator_list:
        return []
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    optional = len(arguments.defaults) + sum(default is not None for default in arguments.kw_defaults)
    found = []
    for place, argument in enumerate(every):
        uses = view.uses(argument.arg)
        value = view.value(uses[0]) if uses else None
        if value is None or not value.is_tensor or value.device is Device.HOST:
            continue
        if place >= len(every) - optional:
            return []
        found.append(argument.arg)
    return found


def _helpers(body: list[ast.stmt], view: FunctionView) -> list[str] | None:
    """The project's own functions that are called; None where something else than light work is."""
    helpers: list[str] = []
    for call in _calls(body):
        name, found = callee(call), method(call)
        if isinstance(call.func, ast.Name):
            if name in _BUILTINS or view.qualified(call.func) == f"torch.{name}":
                continue
            if not view.targets(call) or view.value(call.func).kind is Kind.MODULE:
                return None
            helpers += [name] if name not in helpers else []
        elif found is None or name not in _LIGHT:
            return None
    return helpers


def _calls(body: list[ast.stmt]) -> Iterator[ast.Call]:
    return (part for statement in body for part in ast.walk(statement) if isinstance(part, ast.Call))


def _closed(body: list[ast.stmt], function: ast.FunctionDef, view: FunctionView) -> bool:
    """Whether no tensor or module comes from elsewhere: from ``self``, from around the function."""
    arguments = {a.arg for a in (*function.args.posonlyargs, *function.args.args, *function.args.kwonlyargs)}
    if "self" in arguments or any(isinstance(part, _ELSEWHERE) for s in body for part in ast.walk(s)):
        return False
    for part in (part for statement in body for part in ast.walk(statement)):
        if not isinstance(part, ast.Name) or not isinstance(part.ctx, ast.Load):
            continue
        if part.id in arguments or view.assignments(part.id):
            continue
        value = view.value(part)
        if value.is_tensor or value.kind is Kind.MODULE:
            return False
    return True


def _returned(body: list[ast.stmt], device: str, tensors: list[str], definition: Definition) -> list[Edit] | None:
    """Edits that bring what is returned back to where the arguments were."""
    edits: list[Edit] = []
    for statement in body:
        for part in ast.walk(statement):
            if isinstance(part, ast.Return) and part.value is not None:
                parts = part.value.elts if isinstance(part.value, ast.Tuple) else [part.value]
                for value in parts:
                    back = _back(value, device, tensors, definition)
                    if back is None:
                        return None
                    edits += back
    return edits


def _back(value: ast.expr, device: str, tensors: list[str], definition: Definition) -> list[Edit] | None:
    known = definition.view.value(value)
    places = [
        part
        for part in ast.walk(value)
        if isinstance(part, ast.Attribute) and part.attr == "device" and ast.unparse(part.value) in tensors
    ]
    if isinstance(value, ast.Call) and places == [k.value for k in value.keywords if k.arg == "device"] != []:
        return [definition.replace(places[0], device)]
    if places or isinstance(value, ast.Dict | ast.List | ast.Starred):
        return None
    if isinstance(value, ast.Constant):
        return []
    if not known.is_tensor:
        listed = known.kind is Kind.SEQUENCE and known.element is not None and known.element.kind is Kind.SCALAR
        return [] if known.kind is Kind.SCALAR or listed else None
    text = definition.text(value)
    plain = isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    return [definition.replace(value, f"{text if plain else f'({text})'}.to({device})")]


def _listed(names: list[str]) -> str:
    quoted = [f"`{name}`" for name in names]
    return quoted[0] if len(quoted) == 1 else f"{', '.join(quoted[:-1])} and {quoted[-1]}"
