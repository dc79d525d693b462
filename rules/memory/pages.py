"""Which memory a host tensor lies in, as far as the code tells: pinned, plainly pageable, or nobody knows."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import ancestors, argument, assigned_name, method
from awp_lint.rules.flow import binding
from awp_lint.rules.fusion.context import whole_class
from awp_lint.rules.memory.factories import is_host_device

_DEPTH = 4
#: Methods whose result lies, or may lie, in the memory of what they are called on.
_SAME = frozenset({
    "view", "reshape", "unsqueeze", "squeeze", "expand", "expand_as", "flatten", "transpose", "permute", "narrow", "t",
    "detach", "contiguous", "select", "view_as", "unbind", "chunk", "split", "to", "type", "float", "long", "int",
    "half", "bool", "double", "bfloat16",
})  # fmt: skip


def speaks_of_pinning(node: ast.expr, view: FunctionView, depth: int = 3) -> bool:
    """Whether somebody pinned the memory, as far as names and calls tell."""
    text = ast.unparse(node).lower()
    if "pin" in text or "_cpu_buf" in text:
        return True
    if depth == 0 or not isinstance(node, ast.Name):
        return isinstance(node, ast.Subscript) and speaks_of_pinning(node.value, view, depth)
    for statement in view.assignments(node.id):
        source = statement.value if isinstance(statement, ast.Assign) else None
        if source is not None and assigned_name(view, source) == node.id and speaks_of_pinning(source, view, depth - 1):
            return True
    return view.value(node).kind is Kind.UNKNOWN


def pageable(node: ast.expr, view: FunctionView, file: FileView, depth: int = _DEPTH) -> bool:
    """Whether a host tensor is seen to be made in plain memory.

    Made of Python or NumPy data, by a factory, by arithmetic, by a read that waits. Attributes of other objects and
    parameters may be pinned, and so may what other functions return, unless nothing in the project speaks of pinning.
    """
    while isinstance(node, ast.Subscript):
        node = node.value
    if isinstance(node, ast.BinOp | ast.UnaryOp | ast.Compare):
        return True
    if isinstance(node, ast.Name):
        last = binding(node, view)
        values = [getattr(s, "value", None) for s in view.assignments(node.id)] if last is None else [last[0]]
        bound = [value for value in values if value is not None and not any(part is node for part in ast.walk(value))]
        return depth > 0 and bool(bound) and all(pageable(value, view, file, depth - 1) for value in bound)
    if isinstance(node, ast.Attribute):
        return _own_attribute(node, view, file)
    return isinstance(node, ast.Call) and _made(node, view, file, depth)


def _made(call: ast.Call, view: FunctionView, file: FileView, depth: int) -> bool:
    """Whether a call makes a tensor in new memory that it does not pin."""
    if _asks_to_pin(call):
        return False
    if view.targets(call):
        return not (file.speaks_of("pin_memory") or file.speaks_of("pinned"))
    if (view.qualified(call.func) or "").startswith("torch.") and not _of_tensor(call, view):
        return True
    found = method(call)
    if found is None:
        return False
    source, name = found
    target = argument(call, 0, "device") if name == "to" else None
    if target is not None and is_host_device(target, view):
        return argument(call, None, "non_blocking") is None  # one that does not wait pins what it fills
    if name in _SAME:
        return depth > 0 and pageable(source, view, file, depth - 1)
    return name in ("cpu", "numpy", "clone") or view.value(source).is_tensor


def _of_tensor(call: ast.Call, view: FunctionView) -> bool:
    return (view.qualified(call.func) or "").startswith("torch.Tensor.")


def _asks_to_pin(call: ast.Call) -> bool:
    return any(keyword.arg is None or "pin" in keyword.arg for keyword in call.keywords)


def _own_attribute(node: ast.Attribute, view: FunctionView, file: FileView) -> bool:
    """Whether the class fills ``self.x`` with what a factory or Python data gives, and never with anything else."""
    cls = whole_class(view, file)
    if cls is None or not (isinstance(node.value, ast.Name) and node.value.id == "self"):
        return False
    name = ast.unparse(node)
    filled = [
        part.value
        for part in ast.walk(cls)
        if isinstance(part, ast.Assign | ast.AnnAssign)
        and part.value is not None
        and any(ast.unparse(t) == name for t in (part.targets if isinstance(part, ast.Assign) else [part.target]))
    ]
    return bool(filled) and all(_plain_factory(value, file) for value in filled)


def _plain_factory(value: ast.expr, file: FileView) -> bool:
    """``torch.zeros(…)``, ``torch.tensor(…)``, arithmetic on one; nothing about pinning in it."""
    if any("pin" in getattr(part, "arg", getattr(part, "attr", "") or "") for part in _named(value)):
        return False
    calls = [part for part in ast.walk(value) if isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute)]
    return any(_is_torch(call.func.value, file) for call in calls if isinstance(call.func, ast.Attribute))


def _named(value: ast.expr) -> list[ast.keyword | ast.Attribute]:
    return [part for part in ast.walk(value) if isinstance(part, ast.keyword | ast.Attribute)]


def _is_torch(node: ast.expr, file: FileView) -> bool:
    return isinstance(node, ast.Name) and file.imports.get(node.id) == "torch"


def kept_once(node: ast.AST, view: FunctionView) -> bool:
    """Whether what is made goes into an attribute or a table that the test above it asks about: it is made when the
    answer changes, not in every call."""
    targets: list[str] = []
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Assign):
            targets = [ast.unparse(t) for t in parent.targets if isinstance(t, ast.Attribute | ast.Subscript)]
            if not targets:
                return False
        if isinstance(parent, ast.If) and targets and any(child is statement for statement in parent.body):
            test = ast.unparse(parent.test)
            if any(target in test for target in targets):
                return True
        child = parent
    return False
