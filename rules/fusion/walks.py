"""Walks through a module's whole tree in served code: the modules of a model do not change between requests."""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import callee

_WALKS = frozenset({"modules", "named_modules"})
#: Functions that change the modules they walk: they switch, load, offload, or attach something.
_CHANGES = re.compile(
    r"(^|_)(set|enable|disable|fuse|unfuse|load|unload|add|remove|attach|detach|register|apply|replace|convert|init|reset"
    r"|offload|onload|free|hooks?|compile|quanti[sz]e|prepare|patch|adapters?|lora|dtype|device|to|freeze|merge|unmerge"
    r"|delete|activate|deactivate|scale|print|summary|get)(_|$)"
)


@dataclass(frozen=True, slots=True)
class Walk:
    """A call that walks the tree of ``module``, by itself (``x.modules()``) or in a function of the file."""

    call: ast.Call
    module: ast.expr


def may_walk(call: ast.Call, view: FunctionView, file: FileView) -> bool:
    """Whether a call is by its name a walk, or one of a function of the file."""
    func = call.func
    if isinstance(func, ast.Attribute):
        return func.attr in _WALKS
    return isinstance(func, ast.Name) and len(call.args) == 1 and _helper(func.id, view, file) is not None


def module_walk(call: ast.Call, view: FunctionView, file: FileView) -> Walk | None:
    """The walk that a call is, where it only looks at the modules: it counts or collects them."""
    func = call.func
    if isinstance(func, ast.Attribute) and func.attr in _WALKS and not call.args:
        if _CHANGES.search(view.qualname.rpartition(".")[2]):
            return None
        # the walk through a plain name is a helper's, and told where the helper is called
        whole = view.value(func.value).kind is Kind.MODULE and (isinstance(func.value, ast.Attribute) or _is_self(func))
        return Walk(call, func.value) if whole and _looks_only(call, view) else None
    if isinstance(func, ast.Name) and len(call.args) == 1:
        helper = _helper(func.id, view, file)
        if helper is None or _CHANGES.search(helper.name) or _CHANGES.search(view.qualname.rpartition(".")[2]):
            return None
        if view.value(call.args[0]).kind is Kind.MODULE and _walks_argument(helper):
            return Walk(call, call.args[0])
    return None


def _is_self(func: ast.Attribute) -> bool:
    return isinstance(func.value, ast.Name) and func.value.id == "self"


def _looks_only(call: ast.Call, view: FunctionView) -> bool:
    """Whether the walk is a comprehension, or a loop that calls nothing but tests of types."""
    parent = view.parent(call)
    if isinstance(parent, ast.comprehension):
        made = view.parent(parent)  # `next(m for m in self.modules() if …)` stops at the first
        user = view.parent(made) if made is not None else None
        return not (isinstance(user, ast.Call) and callee(user) == "next")
    return isinstance(parent, ast.For) and parent.iter is call and _counts(parent)


def _counts(loop: ast.For) -> bool:
    names = {callee(part) for statement in loop.body for part in ast.walk(statement) if isinstance(part, ast.Call)}
    writes = any(
        isinstance(part, ast.Attribute | ast.Subscript) and isinstance(part.ctx, ast.Store)
        for statement in loop.body
        for part in ast.walk(statement)
    )
    if any(isinstance(part, ast.Return | ast.Break) for statement in loop.body for part in ast.walk(statement)):
        return False  # it stops at the module it looks for
    return names <= {"isinstance", "append", "add", "len", "type", "hasattr", "getattr", "issubclass"} and not writes


def _helper(name: str, view: FunctionView, file: FileView) -> ast.FunctionDef | None:
    """The function of this name in the definition or at the file's top level."""
    inside: dict[str, ast.FunctionDef] | None = view.memo.get(_helper)
    if inside is None:
        inside = view.memo[_helper] = _by_name(getattr(view.node, "body", []))
    around: dict[str, ast.FunctionDef] | None = file.memo.get(_helper)
    if around is None:
        around = file.memo[_helper] = _by_name(file.tree.body)
    return inside.get(name) or around.get(name)


def _by_name(body: object) -> dict[str, ast.FunctionDef]:
    """The functions that a block defines; of those that share a name the first."""
    statements = reversed(body) if isinstance(body, list) else ()
    return {statement.name: statement for statement in statements if isinstance(statement, ast.FunctionDef)}


def _walks_argument(helper: ast.FunctionDef) -> bool:
    if not helper.args.args:
        return False
    first = helper.args.args[0].arg
    for part in ast.walk(helper):
        iterated = part.iter if isinstance(part, ast.For | ast.comprehension) else None
        if not isinstance(iterated, ast.Call) or not isinstance(iterated.func, ast.Attribute):
            continue
        owner = iterated.func.value
        if iterated.func.attr in _WALKS and isinstance(owner, ast.Name) and owner.id == first:
            return isinstance(part, ast.comprehension) or _counts(part)  # type: ignore[arg-type]
    return False
