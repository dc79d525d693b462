"""Caches that grow by concatenation: how they are written, and how they are used."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.patches.steploop.project import ProjectPart
from awp_lint.rules.common import argument, callee


def growing_attributes(project: ProjectPart) -> dict[tuple[str, str], int]:
    """Attributes that methods replace by themselves with more at the end, by class, and the dimension they grow in."""
    found: dict[tuple[str, str], int] = {}
    for view, _ in project.functions.values():
        for statement in view.nodes(ast.Assign):
            assert isinstance(statement, ast.Assign)
            cat = grows(statement)
            if cat is None or view.class_name is None:
                continue
            target = statement.targets[0]
            dim = argument(cat, 1, "dim")
            assert isinstance(target, ast.Attribute) and isinstance(dim, ast.Constant) and isinstance(dim.value, int)
            if isinstance(target.value, ast.Name) and target.value.id == "self":
                found[view.class_name, target.attr] = dim.value
    return found


def grows(statement: ast.stmt) -> ast.Call | None:
    """The call of ``x.a = torch.cat([x.a, new], dim=2)``."""
    if not (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.value, ast.Call)
    ):
        return None
    call, target = statement.value, statement.targets[0]
    if not isinstance(target, ast.Attribute) or callee(call) != "cat" or not call.args:
        return None
    parts, dim = call.args[0], argument(call, 1, "dim")
    if not (isinstance(parts, ast.List | ast.Tuple) and len(parts.elts) == 2):
        return None
    if ast.unparse(parts.elts[0]) != ast.unparse(target) or len(call.args) + len(call.keywords) != 2:
        return None
    return call if isinstance(dim, ast.Constant) and isinstance(dim.value, int) and dim.value >= 0 else None


def length_read(node: ast.Attribute, dim: int, view: FunctionModel) -> ast.expr | None:
    """``x.a.shape[2]`` or ``x.a.size(2)`` of the attribute ``x.a``, in the dimension in which it grows."""
    parent = view.parent(node)
    whole = view.parent(parent) if isinstance(parent, ast.Attribute) else None
    if not isinstance(parent, ast.Attribute):
        return None
    if parent.attr == "shape" and isinstance(whole, ast.Subscript) and isinstance(whole.slice, ast.Constant):
        return whole if whole.slice.value == dim else None
    if parent.attr == "size" and isinstance(whole, ast.Call) and len(whole.args) == 1:
        given = whole.args[0]
        return whole if isinstance(given, ast.Constant) and given.value == dim else None
    return None


def only_when_empty(target: ast.Attribute, view: FunctionModel) -> bool:
    """Whether a store stands in the branch that makes a cache's first content: ``if x.a is None: x.a = …``."""
    child: ast.AST = target
    parent = view.parent(child)
    while parent is not None:
        if isinstance(parent, ast.If) and child in parent.body:
            tests = parent.test.values if isinstance(parent.test, ast.BoolOp) else [parent.test]
            for test in tests:
                if (
                    isinstance(test, ast.Compare)
                    and isinstance(test.ops[0], ast.Is)
                    and is_none(test.comparators[0])
                    and isinstance(test.left, ast.Attribute)
                    and ast.unparse(test.left.value) == ast.unparse(target.value)
                ):
                    return True
        child, parent = parent, view.parent(parent)
    return False


def plain_attention(call: ast.Call, use: ast.expr, view: FunctionModel) -> bool:
    """Whether keys or values go into an attention without a mask of its own."""
    if view.qualified(call.func) != "torch.nn.functional.scaled_dot_product_attention":
        return False
    if len(call.args) > 3 or any(
        k.arg is None or (k.arg == "attn_mask" and not is_none(k.value)) for k in call.keywords
    ):
        return False
    return use in call.args[1:] or any(k.value is use and k.arg in ("key", "value") for k in call.keywords)
