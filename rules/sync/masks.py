"""Data-dependent shapes with fewer waits: indices found on the host, masked updates of the whole tensor."""

from __future__ import annotations

import ast

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import DTypeClass
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, argument, assigned_name, callee, method, short
from awp_lint.rules.edits import pure_chain
from awp_lint.rules.flow import binding
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import read_of, takes_number

#: Elementwise calls: what they give at one place depends on their operands at that place only.
_ELEMENTWISE = frozenset({
    "abs", "add", "clamp", "clamp_max", "clamp_min", "div", "exp", "float", "half", "bfloat16", "log", "maximum",
    "minimum", "mul", "neg", "pow", "reciprocal", "relu", "rsqrt", "sigmoid", "sqrt", "square", "sub", "tanh", "to",
    "type", "type_as", "where",
})  # fmt: skip


# indices that the host reads ---------------------------------------------------------------------------------------


def host_index(node: ast.expr, definition: Definition) -> Fix | None:
    """``mask.nonzero()`` that Python only counts and reads: copy the mask once, the rest needs no device.

    ``node`` is the ``nonzero`` call, or a read of an element of its result.
    """
    view = definition.view
    call = node if _is_nonzero(node, view) else _found_by(node, view)
    if not isinstance(call, ast.Call):
        return None
    found = method(call)
    mask = call.args[0] if view.qualified(call.func) == "torch.nonzero" and call.args else found[0] if found else None
    if mask is None or view.value(mask).dtype is not DTypeClass.BOOL:
        return None
    name = assigned_name(view, call)
    if name is None:
        uses: list[ast.expr] = [call]
    else:
        if len(view.assignments(name)) != 1:
            return None
        uses = list(view.uses(name))
    kinds = [_host_use(use, view) for use in uses]
    if "read" not in kinds or None in kinds:
        return None
    code = definition.text(mask)
    atom = isinstance(mask, ast.Name | ast.Attribute | ast.Call | ast.Subscript)
    # Brackets around the mask stay where they are: they are no part of the node.
    start, _ = definition.range(mask)
    bracketed = definition.source.text[:start].rstrip().endswith("(") and found is not None and mask is found[0]
    if atom and not bracketed:
        edit = definition.replace(mask, f"{code}.cpu()")
    elif found is not None and mask is found[0]:
        assert isinstance(call.func, ast.Attribute)
        end = definition.range(call.func)[1]
        dot = definition.source.text.rindex(".", 0, end)
        edit = Edit(dot, dot, ".cpu()")
    else:
        edit = definition.replace(mask, f"({code}).cpu()")
    return Fix(
        title=f"copy `{short(mask, 40)}` to the host once and search there",
        safety=Safety.UNSAFE,
        edits=(edit,),
        effects=(Effect.TIMING,),
    )


def _is_nonzero(node: ast.expr, view: FunctionView) -> bool:
    if not isinstance(node, ast.Call) or callee(node) != "nonzero":
        return False
    tupled = argument(node, None, "as_tuple")
    if isinstance(tupled, ast.Constant) and tupled.value is False:
        tupled = None
    plain = not node.args if view.qualified(node.func) != "torch.nonzero" else len(node.args) == 1
    return tupled is None and plain


def _found_by(node: ast.expr, view: FunctionView) -> ast.expr | None:
    """The ``nonzero`` call that a read takes an element of."""
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and isinstance(part.value, ast.Name):
            bound = binding(part.value, view)
            if bound is not None and _is_nonzero(bound[0], view):
                return bound[0]
        elif isinstance(part, ast.Subscript) and _is_nonzero(part.value, view):
            return part.value
    return None


def _host_use(use: ast.expr, view: FunctionView) -> str | None:
    """What a use of the indices is to Python: a "read" of an element, a "count", or None for anything else."""
    parent = view.parent(use)
    if isinstance(parent, ast.Call) and callee(parent) == "len" and isinstance(parent.func, ast.Name):
        return "count"
    if isinstance(parent, ast.Attribute) and parent.attr in ("shape", "numel", "size"):
        return "count"
    if isinstance(parent, ast.Attribute) and parent.attr == "tolist":
        return "read"
    element = isinstance(parent, ast.Subscript) and parent.value is use
    if element and isinstance(parent, ast.expr) and (read_of(view, parent) or takes_number(view, parent)):
        return "read"
    return None


# updates through a mask ----------------------------------------------------------------------------------------------


def masked_update(node: ast.AST, definition: Definition) -> Fix | None:
    """``a = y[mask]; x[mask] = f(a)`` with an elementwise ``f``: compute everywhere, keep where the mask holds."""
    view = definition.view
    for statement in _updates(node, view):
        fix = _update_fix(statement, definition)
        if fix is not None:
            return fix
    return None


def _updates(node: ast.AST, view: FunctionView) -> list[ast.Assign]:
    """The masked assignments that a masked read, or the assignment itself, belongs to."""
    if isinstance(node, ast.Assign):
        return [node]
    if not isinstance(node, ast.Subscript):
        return []
    name = assigned_name(view, node)
    if name is None:
        return [p for p in ancestors(view, node) if isinstance(p, ast.Assign)]
    users = {id(view.statement(use)): view.statement(use) for use in view.uses(name) if view.parent(use) is not None}
    return [statement for statement in users.values() if isinstance(statement, ast.Assign)]


def _update_fix(statement: ast.Assign, definition: Definition) -> Fix | None:
    view = definition.view
    target = statement.targets[0]
    if len(statement.targets) != 1 or not isinstance(target, ast.Subscript) or not pure_chain(target.value):
        return None
    mask = target.slice
    if not pure_chain(mask) or view.value(mask).dtype is not DTypeClass.BOOL:
        return None
    base, through = view.value(target.value), view.value(mask)
    if base.rank is not None and through.rank is not None and base.rank != through.rank:
        return None
    whole, masked = ast.unparse(target.value), ast.unparse(mask)
    edits: list[Edit] = []
    start, value_end = definition.range(statement.value)
    inside: list[Edit] = []
    for part in _leaves(statement.value, view):
        if part is None:
            return None
        if isinstance(part, ast.Subscript):
            if not _whole_of(part, whole, masked):
                return None
            inside.append(definition.replace(part, definition.text(part.value)))
        else:
            taken = _taken(part, statement, whole, masked, view)
            if taken is None:
                return None
            edit = definition.replace(taken, definition.text(taken.value))
            if edit not in edits:
                edits.append(edit)
    if not edits and not inside:
        return None
    code, position = "", start
    for edit in sorted(inside, key=lambda e: e.start):
        code += definition.source.text[position : edit.start] + edit.replacement
        position = edit.end
    code += definition.source.text[position:value_end]
    where = definition.torch_name("torch.where")
    tensor = definition.text(target.value)
    new = f"{tensor}.copy_({where}({definition.text(mask)}, {code}, {tensor}))"
    same_rank = base.rank is not None and through.rank is not None
    return Fix(
        title=f"update `{short(target.value, 30)}` with `torch.where`, without gathering through `{short(mask, 30)}`",
        safety=Safety.UNSAFE,
        edits=(*edits, definition.replace(statement, new)),
        effects=(Effect.MEMORY, Effect.TIMING),
        requires=() if same_rank else (f"`{short(mask, 30)}` has the shape of `{short(target.value, 30)}`",),
    )


def _leaves(node: ast.expr, view: FunctionView) -> list[ast.Name | ast.Subscript | None]:
    """The tensors that an elementwise expression is made of; None among them where it is not elementwise."""
    found: list[ast.Name | ast.Subscript | None] = []
    stack: list[ast.expr] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Constant):
            continue
        if isinstance(part, ast.Attribute) and part.attr in ("dtype", "device"):
            continue
        if isinstance(part, ast.BinOp) and not isinstance(part.op, ast.MatMult):
            stack += [part.left, part.right]
        elif isinstance(part, ast.UnaryOp) and not isinstance(part.op, ast.Not):
            stack.append(part.operand)
        elif isinstance(part, ast.Compare) and len(part.ops) == 1:
            stack += [part.left, part.comparators[0]]
        elif isinstance(part, ast.Call) and callee(part) in _ELEMENTWISE:
            if isinstance(part.func, ast.Attribute) and not (view.qualified(part.func) or "").startswith("torch."):
                return [None]
            if isinstance(part.func, ast.Attribute) and view.value(part.func.value).is_tensor:
                stack.append(part.func.value)
            stack += [*part.args, *(k.value for k in part.keywords)]
        elif isinstance(part, ast.Subscript | ast.Name):
            if view.value(part).is_tensor:
                found.append(part)
            elif isinstance(part, ast.Subscript):
                return [None]
        elif view.value(part).is_tensor or not pure_chain(part):
            return [None]
    return found


def _whole_of(part: ast.Subscript, whole: str, masked: str) -> bool:
    """Whether a read takes, through the same mask, from the updated tensor or something expanded to it."""
    if ast.unparse(part.slice) != masked:
        return False
    base = part.value
    if isinstance(base, ast.Call) and callee(base) == "expand_as" and len(base.args) == 1:
        return ast.unparse(base.args[0]) == whole
    return ast.unparse(base) == whole


def _taken(name: ast.Name, statement: ast.stmt, whole: str, masked: str, view: FunctionView) -> ast.Subscript | None:
    """The masked read behind a local name that serves the update alone."""
    bound = binding(name, view)
    if bound is None or not isinstance(bound[0], ast.Subscript) or not _whole_of(bound[0], whole, masked):
        return None
    if len(view.assignments(name.id)) != 1 or view.parent(bound[1]) is not view.parent(statement):
        return None
    if any(view.parent(use) is None or view.statement(use) is not statement for use in view.uses(name.id)):
        return None
    return bound[0]
