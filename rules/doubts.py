"""What makes a rewrite wrong that looks right: a value may be no tensor, may be missing, or is kept by somebody."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, callee

_KEEPING = frozenset({
    "append", "appendleft", "extend", "insert", "add", "setdefault", "update", "register_buffer", "put", "setattr",
})  # fmt: skip


def mixed(node: ast.expr, view: FunctionView) -> bool:
    """Whether a value that counts as a tensor may be a Python one: ``flag and mask.any()``, by name too."""
    return _mixed(node, view, set())


def _mixed(node: ast.expr, view: FunctionView, seen: set[str]) -> bool:
    """``seen`` are names that were asked about: ``ok = ok and mask.any()`` leads back to itself."""
    if isinstance(node, ast.BoolOp | ast.IfExp):
        parts = node.values if isinstance(node, ast.BoolOp) else [node.body, node.orelse]
        return any(_mixed(part, view, seen) or not view.value(part).is_tensor for part in parts)
    if isinstance(node, ast.Name) and node.id not in seen:
        seen.add(node.id)
        bound = [s.value for s in view.assignments(node.id) if isinstance(s, ast.Assign | ast.AnnAssign) and s.value]
        return any(isinstance(value, ast.BoolOp | ast.IfExp) and _mixed(value, view, seen) for value in bound)
    return False


def optional_names(view: FunctionView) -> frozenset[str]:
    """Names and dotted chains that the function asks about None: they may be missing where it does not."""
    found: set[str] = set()
    for node in view.nodes(ast.Compare):
        assert isinstance(node, ast.Compare)
        if len(node.ops) == 1 and isinstance(node.ops[0], ast.Is | ast.IsNot):
            found |= {
                ast.unparse(side) for side in (node.left, node.comparators[0]) if not isinstance(side, ast.Constant)
            }
    return frozenset(found)


def default_none(view: FunctionView) -> frozenset[str]:
    """Parameters that are None where the caller gives nothing."""
    return _by_default(view, None)


def off_by_default(view: FunctionView) -> frozenset[str]:
    """Parameters that are False where the caller gives nothing, and that the function does not bind anew."""
    return frozenset(name for name in _by_default(view, False) if not view.assignments(name))


_KEYWORDS = re.compile(r"\w*kwargs|\w*(options|opts|cfg|config|settings)")


def off_in_keywords(view: FunctionView) -> frozenset[str]:
    """Names that hold what keywords or settings say of an option, False unless they speak of it:
    ``timed = kwargs.get("timed", False)``."""
    found = set()
    for node in view.nodes(ast.Assign):
        assert isinstance(node, ast.Assign)
        name = node.targets[0]
        if isinstance(name, ast.Name) and len(view.assignments(name.id)) == 1 and _asks_keywords(node.value):
            found.add(name.id)
    return frozenset(found)


def _asks_keywords(node: ast.expr) -> bool:
    if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and len(node.args) == 2):
        return False
    holder, default = node.func.value, node.args[1]
    name = holder.attr if isinstance(holder, ast.Attribute) else getattr(holder, "id", "")
    asked = node.func.attr in ("get", "pop") and _KEYWORDS.fullmatch(name) is not None
    return asked and isinstance(default, ast.Constant) and default.value is False


def _by_default(view: FunctionView, value: object) -> frozenset[str]:
    if isinstance(view.node, ast.Module):
        return frozenset()
    constants = default_constants(view.node.args)
    return frozenset(name for name, default in constants.items() if default is value)


def default_constants(arguments: ast.arguments) -> dict[str, object]:
    """The parameters whose defaults are constants, and those."""
    plain = [*arguments.posonlyargs, *arguments.args]
    pairs = [*zip(reversed(plain), reversed(arguments.defaults), strict=False)]
    pairs += [(a, d) for a, d in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if d is not None]
    return {a.arg: d.value for a, d in pairs if isinstance(d, ast.Constant)}


def reaches_into(node: ast.expr, names: frozenset[str]) -> bool:
    """Whether an expression takes an attribute, an item or a result of one of the names."""
    for part in ast.walk(node):
        inner = part.func if isinstance(part, ast.Call) else getattr(part, "value", None)
        taken = isinstance(part, ast.Call | ast.Attribute | ast.Subscript) and isinstance(
            inner, ast.Name | ast.Attribute
        )
        if taken and isinstance(inner, ast.expr) and ast.unparse(inner) in names:
            return True
    return False


def kept(node: ast.expr, view: FunctionView) -> bool:
    """Whether somebody keeps the very object that an expression gives: in a container, an attribute, a list."""
    child: ast.AST = node
    held = False
    for parent in ancestors(view, node):
        if isinstance(parent, ast.List | ast.Tuple | ast.Set | ast.Dict):
            held = True
        elif isinstance(parent, ast.Call):
            return callee(parent) in _KEEPING and child is not parent.func
        elif isinstance(parent, ast.Assign):
            return held or any(
                isinstance(target, ast.Attribute)
                or (isinstance(target, ast.Subscript) and not view.value(target.value).is_tensor)
                for target in parent.targets
            )
        elif isinstance(parent, ast.AugAssign | ast.Return | ast.Yield):
            return held
        elif not isinstance(parent, ast.IfExp | ast.keyword | ast.Starred | ast.ListComp | ast.NamedExpr):
            return False
        child = parent
    return False
