"""Models that run behind a helper which is called for each item."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.batching.calls import MODELS_ALONE, model_call, model_of
from awp_lint.rules.common import callee, names_in, target_names


def model_behind(call: ast.Call, item: frozenset[str], view: FunctionView, file: FileView) -> str | None:
    """The model that a helper of the same file surely runs once, on what it is given of an item; else None.

    ``item``: the names that the item goes by where the helper is called. A helper that loops, that branches around the
    model or that changes its object may need one item at a time.
    """
    found = view.targets(call)
    helper = _views(file).get(found[0]) if len(found) == 1 else None
    if helper is None or not isinstance(helper.node, ast.FunctionDef) or helper.node is view.node:
        return None
    reached = _given(call, item, helper)
    if not reached or _cut_to_size(call, item) or _keeps_something(helper):
        return None
    for statement in helper.node.body:
        while isinstance(statement, ast.With) and len(statement.body) == 1:
            statement = statement.body[0]
        inner = statement.body if isinstance(statement, ast.With) else [statement]
        for part in inner:
            if isinstance(part, ast.For | ast.While | ast.If | ast.Try | ast.FunctionDef):
                continue
            for node in ast.walk(part):
                if isinstance(node, ast.Call) and helper.parent(node) is not None:
                    name = model_call(node, helper)
                    arguments = [*node.args, *(keyword.value for keyword in node.keywords)]
                    if name is not None and any(names_in(argument) & reached for argument in arguments):
                        sure = helper.value(model_of(node)).certainty is not Certainty.UNKNOWN
                        return name if (sure or callee(node) in MODELS_ALONE) and not helper.loops(node) else None
            if (
                isinstance(part, ast.Assign | ast.AnnAssign)
                and part.value is not None
                and names_in(part.value) & reached
            ):
                targets = part.targets if isinstance(part, ast.Assign) else [part.target]
                reached |= frozenset().union(*map(target_names, targets))
    return None


def _views(file: FileView) -> dict[str, FunctionView]:
    known: dict[str, FunctionView] | None = file.memo.get(_views)
    if known is None:
        known = file.memo[_views] = {f"{file.module}.{view.qualname}": view for view in file.functions()}
    return known


def _given(call: ast.Call, item: frozenset[str], helper: FunctionView) -> frozenset[str]:
    """The parameters of a helper that a call gives something of an item."""
    assert isinstance(helper.node, ast.FunctionDef)
    arguments = helper.node.args
    names = [argument.arg for argument in (*arguments.posonlyargs, *arguments.args)]
    if helper.class_name is not None and names[:1] in (["self"], ["cls"]):
        names = names[1:]
    given = {name for name, argument in zip(names, call.args, strict=False) if names_in(argument) & item}
    given |= {k.arg for k in call.keywords if k.arg is not None and names_in(k.value) & item}
    return frozenset(given)


def _cut_to_size(call: ast.Call, item: frozenset[str]) -> bool:
    """Whether an item is cut to its own size: ``image[:, :height, :width]``. The others are of other sizes."""
    return any(
        bound is not None and names_in(bound) & item
        for part in ast.walk(call)
        if isinstance(part, ast.Slice)
        for bound in (part.lower, part.upper)
    )


def _keeps_something(helper: FunctionView) -> bool:
    """Whether a helper writes into its object or into what it was given, or leaves something for its next call."""
    for node in helper.nodes(ast.Assign, ast.AugAssign, ast.AnnAssign, ast.Global, ast.Nonlocal, ast.Yield, ast.Await):
        if isinstance(node, ast.Global | ast.Nonlocal | ast.Yield | ast.Await):
            return True
        targets = node.targets if isinstance(node, ast.Assign) else [node.target]  # type: ignore[attr-defined]
        parts = (part for target in targets for part in ast.walk(target))
        if any(isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store) for part in parts):
            return True
    return False
