"""Where a fusion finding counts: served device code that no compiler fuses and no faster twin replaces."""

from __future__ import annotations

import ast
import re
import weakref

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Region
from awp_lint.rules.common import callee, served_frequency

_REFERENCE = re.compile(
    r"(^|_)(native|python|reference|ref|eager|fallback|naive|slow|torch_impl|pytorch|py|impl_abstract|fake|meta|baseline|inputs)(_|$)"
    r"|_torch$"
)
_KERNEL_DECORATORS = ("triton.", "helion.", "numba.", "cute.", "tilelang.", "cutlass.", "tvm.")
#: Class decorators that put a fused kernel in place of ``forward``.
_REPLACED = frozenset({"use_kernel_forward_from_hub", "use_kernelized_func", "support_torch_compile", "CustomOp"})


_called: weakref.WeakKeyDictionary[FunctionView, frozenset[str]] = weakref.WeakKeyDictionary()


def called(view: FunctionView) -> frozenset[str]:
    """Names of everything that a function calls, without the underscore of in-place spellings: a quick first test."""
    known = _called.get(view)
    if known is None:
        names = (callee(call) for call in view.nodes(ast.Call) if isinstance(call, ast.Call))
        known = _called[view] = frozenset(name.rstrip("_") for name in names)
    return known


def fused_elsewhere(view: FunctionView, node: ast.AST) -> bool:
    """Whether a compiler or a captured graph already takes the node, or it is the source of a kernel."""
    if view.regions(node) & (Region.COMPILED | Region.CAPTURED):
        return True
    definition = view.node
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        for decorator in definition.decorator_list:
            target = decorator.func if isinstance(decorator, ast.Call) else decorator
            dotted = view.qualified(target) or ast.unparse(target)
            if dotted.startswith(_KERNEL_DECORATORS):
                return True
    return False


def class_node(view: FunctionView, file: FileView) -> ast.ClassDef | None:
    """The class that holds a method."""
    if view.class_name is None:
        return None
    names = view.qualname.split(".")[:-1]
    body: list[ast.stmt] = file.tree.body
    found: ast.ClassDef | None = None
    for name in names:
        found = next((s for s in _flat(body) if isinstance(s, ast.ClassDef) and s.name == name), None)
        if found is None:
            return None
        body = found.body
    return found


def _flat(body: list[ast.stmt]) -> list[ast.stmt]:
    """The statements of a block, those below ``if`` and ``try`` included."""
    result: list[ast.stmt] = []
    for statement in body:
        result.append(statement)
        if isinstance(statement, ast.If | ast.Try):
            for field in ("body", "orelse", "finalbody"):
                result += _flat(getattr(statement, field, []))
            for handler in getattr(statement, "handlers", []):
                result += _flat(handler.body)
    return result


def replaced_class(view: FunctionView, file: FileView) -> bool:
    """Whether a decorator of the class swaps in a fused kernel."""
    cls = class_node(view, file)
    for decorator in cls.decorator_list if cls is not None else ():
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        name = target.attr if isinstance(target, ast.Attribute) else getattr(target, "id", "")
        if name in _REPLACED:
            return True
        if isinstance(target, ast.Attribute) and "CustomOp" in ast.unparse(target):
            return True
    return False


def is_reference(view: FunctionView) -> bool:
    """Whether the function is by its name the plain twin of a faster one."""
    return bool(_REFERENCE.search(view.qualname.rpartition(".")[2].lower()))


def place(view: FunctionView, node: ast.AST) -> tuple[Frequency, Confidence] | None:
    """How often a node of served code runs, and the most its finding can be worth; None where it does not count."""
    if fused_elsewhere(view, node):
        return None
    frequency = served_frequency(view, node)
    if frequency is None:
        return None
    cap = Confidence.HIGH
    if view.regions(node) & Region.FALLBACK or is_reference(view):
        cap = Confidence.LOW
    return frequency, cap
