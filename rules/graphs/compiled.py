"""What one file compiles or captures: the calls that do it, their options, and the code that stands below them."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import argument

#: Modes of ``torch.compile`` that record CUDA graphs.
GRAPH_MODES = frozenset({"reduce-overhead", "max-autotune"})
_GRAPHS = frozenset({"torch.cuda.graph", "torch.cuda.graphs.graph"})


@dataclass(frozen=True, slots=True)
class Compiled:
    """One ``torch.compile(...)``: the call (or the bare decorator), where it stands, and what is known of it.

    ``target`` is the dotted name of the function whose code is compiled, ``name`` how the result is called in this file
    (``step``, ``self.model``); None where not known. ``options`` are the keywords; an opaque call has ``known`` False.
    """

    node: ast.expr
    view: FunctionView
    target: str | None
    name: str | None
    options: dict[str, ast.expr]
    known: bool = True

    def constant(self, option: str) -> object:
        """The literal value of an option, None where it is absent or not a literal."""
        value = self.options.get(option)
        return value.value if isinstance(value, ast.Constant) else None

    @property
    def records_graphs(self) -> bool:
        """Whether its mode records CUDA graphs."""
        return self.constant("mode") in GRAPH_MODES

    def text(self) -> str:
        """The call as a person reads it, its options only."""
        options = ", ".join(f"{name}={ast.unparse(value)}" for name, value in self.options.items())
        return f"torch.compile({options})" if options else "torch.compile"


def compiled_in(file: FileView) -> tuple[Compiled, ...]:
    """Everything that the file compiles, by call, method call or decorator."""
    known: tuple[Compiled, ...] | None = file.memo.get(compiled_in)
    if known is None:
        some = ".compile" in file.text or "compile" in file.imports
        known = file.memo[compiled_in] = tuple(_find(file)) if some else ()
    return known


def _find(file: FileView) -> Iterator[Compiled]:
    for view in file.functions():
        for call in view.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            if _may_compile(call.func, file) and is_compile(call, view):
                yield _of_call(call, view)
        node = view.node
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                found = _of_decorator(decorator, view)
                if found is not None:
                    yield found


def _may_compile(function: ast.expr, file: FileView) -> bool:
    """Whether a name can lead to ``compile``: the quick answer, before any value is asked for."""
    if isinstance(function, ast.Attribute):
        return function.attr == "compile"
    return isinstance(function, ast.Name) and file.imports.get(function.id, function.id).endswith("compile")


def is_compile(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call is ``torch.compile(f)`` or ``module.compile()``."""
    if view.qualified(call.func) == "torch.compile":
        return bool(call.args) or any(k.arg == "model" for k in call.keywords)
    if isinstance(call.func, ast.Attribute) and call.func.attr == "compile":
        return view.value(call.func.value).kind is Kind.MODULE
    return False


def _of_call(call: ast.Call, view: FunctionView) -> Compiled:
    method = view.qualified(call.func) != "torch.compile"
    what = call.func.value if method and isinstance(call.func, ast.Attribute) else argument(call, 0, "model")
    options = {k.arg: k.value for k in call.keywords if k.arg is not None and k.arg != "model"}
    name = ast.unparse(what) if method and what is not None else _bound(call, view)
    known = all(k.arg is not None for k in call.keywords)
    return Compiled(call, view, None if what is None else _code_of(what, view), name, options, known)


def _of_decorator(decorator: ast.expr, view: FunctionView) -> Compiled | None:
    call = decorator if isinstance(decorator, ast.Call) else None
    target = call.func if call is not None else decorator
    dotted = view.qualified(target)
    if dotted == "functools.partial" and call is not None and call.args:
        dotted = view.qualified(call.args[0])
    if dotted != "torch.compile":
        return None
    options = {k.arg: k.value for k in call.keywords if k.arg is not None} if call is not None else {}
    name = view.qualname.rpartition(".")[2]
    return Compiled(
        decorator, view, _dotted(view), f"self.{name}" if view.class_name else name, options,
        call is None or all(k.arg is not None for k in call.keywords),
    )  # fmt: skip


def _dotted(view: FunctionView) -> str:
    return f"{view.module}.{view.qualname}" if view.module else view.qualname


def _code_of(what: ast.expr, view: FunctionView) -> str | None:
    """The function whose code is compiled: the function itself, or the module's ``forward``."""
    value = view.value(what)
    if value.kind is Kind.MODULE and value.cls is not None:
        return f"{value.cls}.forward"
    if value.kind is Kind.CALLABLE and value.cls is not None:
        return value.cls
    dotted = view.qualified(what)
    if dotted is not None and dotted.endswith(".forward"):
        return dotted
    return dotted if isinstance(what, ast.Name) else None


def _bound(call: ast.Call, view: FunctionView) -> str | None:
    """``step`` of ``step = torch.compile(f)``, ``self.model`` of ``self.model = torch.compile(m)``."""
    parent = view.parent(call)
    if isinstance(parent, ast.Assign) and parent.value is call and len(parent.targets) == 1:
        target = parent.targets[0]
        return ast.unparse(target) if isinstance(target, ast.Name | ast.Attribute) else None
    return None


def compiled_callee(call: ast.Call, view: FunctionView, file: FileView) -> Compiled | None:
    """The compilation whose result a call runs, where exactly one can be meant."""
    spelled = ast.unparse(call.func)
    dotted = view.qualified(call.func)
    found = []
    for one in compiled_in(file):
        if (
            (isinstance(call.func, ast.Name) and one.name == spelled and one.node in descendants(view.node))
            or (one.target is not None and dotted == one.target and not isinstance(one.node, ast.Call))
            or (one.name == spelled and _same_scope(one, view, spelled))
        ):
            found.append(one)
    names = {id(one.node) for one in found}
    return found[0] if len(names) == 1 else None


def _same_scope(one: Compiled, view: FunctionView, spelled: str) -> bool:
    if spelled.startswith("self."):
        return one.view.class_name is not None and one.view.class_name == view.class_name
    if one.view.node is view.node:
        return True
    at_top = isinstance(one.view.node, ast.Module)
    return at_top and not view.assignments(spelled.split(".")[0])


def compiled_code(view: FunctionView, file: FileView) -> Compiled | None:
    """The compilation that takes in a definition's code: its own, or that of a caller in the same file."""
    known: dict[int, Compiled] | None = file.memo.get(compiled_code)
    if known is None:
        known = file.memo[compiled_code] = _spread(file) if compiled_in(file) else {}
    return known.get(id(view.node))


def _spread(file: FileView) -> dict[int, Compiled]:
    views = {_dotted(view): view for view in file.functions()}
    found: dict[int, Compiled] = {}
    pending = [(views[one.target], one) for one in compiled_in(file) if one.target in views]
    while pending:
        view, one = pending.pop()
        if id(view.node) in found:
            continue
        found[id(view.node)] = one
        for call in view.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            pending += [(views[name], one) for name in called(call, view) if name in views]
    return found


def called(call: ast.Call, view: FunctionView) -> tuple[str, ...]:
    """Dotted names of the project's functions that a call runs; a module's ``forward`` for a call of the module."""
    reached = view.targets(call)
    if reached:
        return reached
    value = view.value(call.func)
    return (f"{value.cls}.forward",) if value.kind is Kind.MODULE and value.cls is not None else ()


def captured_code(view: FunctionView, file: FileView) -> int | None:
    """The line of the ``with torch.cuda.graph(...)`` of this file below which the whole definition runs."""
    known: dict[int, int] | None = file.memo.get(captured_code)
    if known is None:
        some = "cuda.graph" in file.text or "graph(" in file.text
        known = file.memo[captured_code] = _spread_captures(file) if some else {}
    return known.get(id(view.node))


def capture_block(node: ast.AST, view: FunctionView) -> ast.With | None:
    """The ``with torch.cuda.graph(...)`` around a node of the same definition."""
    child, parent = node, view.parent(node)
    while parent is not None:
        if isinstance(parent, ast.With) and child in parent.body and _opens_capture(parent, view):
            return parent
        child, parent = parent, view.parent(parent)
    return None


def _opens_capture(block: ast.With, view: FunctionView) -> bool:
    return any(
        isinstance(item.context_expr, ast.Call) and view.qualified(item.context_expr.func) in _GRAPHS
        for item in block.items
    )


def _spread_captures(file: FileView) -> dict[int, int]:
    views = {_dotted(view): view for view in file.functions()}
    found: dict[int, int] = {}
    pending: list[tuple[str, int]] = []
    for view in views.values():
        for block in view.nodes(ast.With):
            assert isinstance(block, ast.With)
            if not _opens_capture(block, view):
                continue
            for statement in block.body:
                for part in ast.walk(statement):
                    if isinstance(part, ast.Call) and view.parent(part) is not None:
                        pending += [(name, block.lineno) for name in called(part, view)]
    while pending:
        name, line = pending.pop()
        inner = views.get(name)
        if inner is None or id(inner.node) in found:
            continue
        found[id(inner.node)] = line
        for call in inner.nodes(ast.Call):
            assert isinstance(call, ast.Call)
            pending += [(other, line) for other in called(call, inner)]
    return found
