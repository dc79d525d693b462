"""A function of elementwise operations alone, handed to the compiler as a whole."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.edits import indent_of, starts_line
from awp_lint.rules.fusion.chains import elementwise_only
from awp_lint.rules.nodemap import Definition


def compiled(definition: Definition) -> Fix | None:
    """The fix that decorates the view's function with ``torch.compile``; None where it does anything else as well."""
    view = definition.view
    node = view.node
    if not isinstance(node, ast.FunctionDef) or node.decorator_list or not starts_line(node, definition):
        return None
    if "torch.jit.script" in definition.source.text or not _all_elementwise(node, view):
        return None
    place = definition.source.line_starts[node.lineno - 1]
    decorator = f"@{definition.torch_name('torch.compile')}(dynamic=True)"
    line = f"{indent_of(node, definition)}{decorator}{definition.source.newline}"
    return Fix(
        title=f"compile `{node.name}`",
        safety=Safety.UNSAFE,
        edits=(Edit(place, place, line),),
        effects=(Effect.NUMERICS, Effect.TIMING),
        requires=("a compiler is at hand where it runs, and few types and ranks reach it",),
    )


def _all_elementwise(node: ast.FunctionDef, view: FunctionView) -> bool:
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    if not body or not isinstance(body[-1], ast.Return):
        return False
    return all(_local(statement) and elementwise_only(statement, view) for statement in body)


def _local(statement: ast.stmt) -> bool:
    """Whether a statement binds plain names only."""
    targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
    names = [part for t in targets if t is not None for part in (t.elts if isinstance(t, ast.Tuple) else [t])]
    return all(isinstance(name, ast.Name) for name in names)
