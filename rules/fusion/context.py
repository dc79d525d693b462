"""Where a fusion finding counts: served device code that no compiler fuses and no faster twin replaces."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Region
from awp_lint.rules.common import ancestors, callee, served_frequency
from awp_lint.rules.flow import before

_REFERENCE = re.compile(
    r"(^|_)(native|python|reference|ref|eager|fallback|naive|slow|torch_impl|pytorch|py|impl_abstract|fake|meta|baseline|inputs)(_|$)"
    r"|_torch$"
)
_KERNEL_DECORATORS = ("triton.", "helion.", "numba.", "cute.", "tilelang.", "cutlass.", "tvm.")
#: Class decorators that put a fused kernel in place of ``forward``.
_REPLACED = frozenset({"use_kernel_forward_from_hub", "use_kernelized_func", "support_torch_compile", "CustomOp"})
#: The decorator by which an engine compiles a model's class with all its parts.
_WHOLE = "support_torch_compile"
_LIBRARY = re.compile(r"_?(HAS|HAVE)_\w+|_?(has|have)_\w+|_?is_\w+_available|\w+_AVAILABLE|\w+_available")
#: Names that ask for another kind of device: the other side is where most run.
_DEVICES = re.compile(
    r"(^|_)(npu|xpu|mps|hpu|xla|tpu|mlu|musa|neuron\w*|hip|rocm|cuda|gpu|cpu|device|accelerator)(_|$)"
)
_TRACED = re.compile(r"\bis_(compileable|compilable|compiling|dynamo_compiling)\b")


def called(view: FunctionView) -> frozenset[str]:
    """Names of everything that a function calls, without the underscore of in-place spellings: a quick first test."""
    known: dict[None, frozenset[str]] = view.memo.setdefault(called, {})
    if not known:
        names = (callee(call) for call in view.nodes(ast.Call) if isinstance(call, ast.Call))
        known[None] = frozenset(name.rstrip("_") for name in names)
    return known[None]


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
    """The class that holds a method. Of its other methods those without a candidate may have lost their bodies."""
    return _class_in(file.tree, view)


def whole_class(view: FunctionView, file: FileView) -> ast.ClassDef | None:
    """The class that holds a method, with the bodies of all its methods: what their constructors make tells of it."""
    return _class_in(whole_tree(file), view)


def whole_tree(file: FileView) -> ast.Module:
    """The tree of all of a file's text: the one that rules walk lacks the functions in which nothing can be found."""
    known: ast.Module | None = file.memo.get(whole_tree)
    if known is None:
        try:
            known = ast.parse(file.text)
        except (SyntaxError, ValueError):  # a notebook's cells
            known = file.tree
        file.memo[whole_tree] = known
    return known


def _class_in(tree: ast.Module, view: FunctionView) -> ast.ClassDef | None:
    if view.class_name is None:
        return None
    names = view.qualname.split(".")[:-1]
    body: list[ast.stmt] = tree.body
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


def compiled_class(view: FunctionView, file: FileView) -> bool:
    """Whether an engine compiles the method's class: by a decorator of its own, or as a part of a class of the file
    that has one (``@support_torch_compile class Model`` whose methods name the layer's class)."""
    known: frozenset[str] | None = file.memo.get(compiled_class)
    if known is None:
        known = file.memo[compiled_class] = _compiled_classes(file) if _WHOLE in file.text else frozenset()
    return bool(known) and view.class_name is not None and view.class_name.rpartition(".")[2] in known


def _compiled_classes(file: FileView) -> frozenset[str]:
    classes = {s.name: s for s in _flat(whole_tree(file).body) if isinstance(s, ast.ClassDef)}
    pending = [name for name, cls in classes.items() if any(_WHOLE in ast.unparse(d) for d in cls.decorator_list)]
    found: set[str] = set()
    while pending:
        name = pending.pop()
        if name in found:
            continue
        found.add(name)
        named = {part.id for part in ast.walk(classes[name]) if isinstance(part, ast.Name)}
        pending += [other for other in classes if other in named]
    return frozenset(found)


def without_library(view: FunctionView, node: ast.AST) -> bool:
    """Whether a node runs only where an optional library is missing: the other side of ``if _HAS_FLASH_ATTN:``, or
    behind one that returns."""
    child = node
    for parent in ancestors(view, node):
        if any(isinstance(s, ast.If) and _asks_for_library(s.test) and _leaves(s) for s in before(child, parent)):
            return True
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test:
            test, other = (
                parent.test,
                child is parent.orelse
                or (isinstance(parent, ast.If) and any(child is statement for statement in parent.orelse)),
            )
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, other = test.operand, not other
            if other and _asks_for_library(test):
                return True
        child = parent
    return False


def _leaves(branch: ast.If) -> bool:
    return isinstance(branch.body[-1], ast.Return | ast.Raise)


def _asks_for_library(test: ast.expr) -> bool:
    called = test.func if isinstance(test, ast.Call) else test
    name = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
    return _LIBRARY.fullmatch(name) is not None and _DEVICES.search(name.lower()) is None


def traced_branch(view: FunctionView, node: ast.AST) -> bool:
    """Whether a branch is there for compilers: ``if cache.is_compileable:``, ``if torch.compiler.is_compiling():``."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test:
            test, wanted = parent.test, any(child is statement for statement in parent.body)
            if isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
                test, wanted = test.operand, not wanted
            if wanted and _TRACED.search(ast.unparse(test)):
                return True
        child = parent
    return False


def declined(view: FunctionView, file: FileView, call: str) -> bool:
    """Whether the code itself speaks of the fused call, in a comment or docstring in or right above the function: its
    authors know it, and have a reason (``Using F.gelu yields subtly wrong results``)."""
    node = view.node
    if isinstance(node, ast.Module | ast.Lambda) or node.end_lineno is None:
        return False
    name = call.rpartition(".")[2].partition("(")[0]
    lines = file.text.splitlines()[max(0, node.lineno - 5) : node.end_lineno]
    spoken = "\n".join(line.partition("#")[2] for line in lines) + (ast.get_docstring(node) or "")
    return re.search(rf"\b(F|nn|functional|torch)\.{re.escape(name)}\b", spoken, re.IGNORECASE) is not None


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
    if view.regions(node) & Region.FALLBACK or is_reference(view) or without_library(view, node):
        cap = Confidence.LOW
    return frequency, cap
