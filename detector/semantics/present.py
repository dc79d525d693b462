"""Parameters that a function uses before it asks whether they are there: what it does without them never runs.

``mask = mask.flatten(0, 1)`` at the top of a function, and ``if mask is not None: … else: …`` below: nobody calls it
without a mask.
"""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.conditions import held
from awp_lint.detector.semantics.definition import Definition, child_nodes, descendants

_PLAIN = (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Expr, ast.Return)
_MAYBE = (ast.IfExp, ast.BoolOp, ast.Lambda, ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp)


def used_outright(definition: Definition) -> dict[str, int]:
    """Parameters that are never bound anew, of each the first line that takes something of it whatever happens."""
    node = definition.node
    if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
        return {}
    kept = {name for name in definition.parameters if name != "self" and not definition.assignments(name)}
    found: dict[str, int] = {}
    waiting: list[ast.AST] = list(reversed(node.body))
    while waiting:
        part = waiting.pop()
        if isinstance(part, (ast.With, ast.AsyncWith)):
            waiting += reversed(part.body)
        elif isinstance(part, ast.stmt) and not isinstance(part, _PLAIN):
            if any(isinstance(inner, (ast.Return, ast.Raise)) for inner in descendants(part)):
                break  # what follows may not be reached
        elif not isinstance(part, _MAYBE):
            if isinstance(part, (ast.Attribute, ast.Subscript)) and isinstance(part.value, ast.Name):
                name = part.value.id
                if name in kept:
                    found[name] = min(found.get(name, part.lineno), part.lineno)
            waiting += child_nodes(part)
    return found


def contradicted(child: ast.AST, parent: ast.If | ast.IfExp, used: dict[str, int]) -> bool:
    """Whether ``child`` stands where a parameter is missing that was used before."""
    if not used or child is parent.test:
        return False
    body = parent.body if isinstance(parent.body, list) else [parent.body]
    return any(
        state == "none" and used.get(name, parent.lineno) < parent.lineno
        for name, state in held(parent.test, child in body)
    )
