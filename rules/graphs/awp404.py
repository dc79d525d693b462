"""AWP404 compile-per-call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, ancestors, frequency_reason, lower, short

#: What is made anew by each call of these.
_MAKERS = {
    "torch.jit.trace": "traces",
    "torch.jit.trace_module": "traces",
    "torch.jit.script": "compiles",
    "torch.jit.freeze": "freezes",
    "torch.jit.optimize_for_inference": "optimises",
    "torch.cuda.graph": "captures",
    "torch.cuda.make_graphed_callables": "captures",
    "torch.export.export": "exports",
    "torch.onnx.export": "exports",
    "torch.compile": "wraps",
}


class CompilePerCall(Rule):
    """A trace, capture or compilation made for one call and thrown away."""

    id = "AWP404"
    name = "compile-per-call"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.HIGH
    cost_us = 100000.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"compile", b"jit", b"graph", b"export")
    nodes = (ast.Call,)
    calls = frozenset(name.rpartition(".")[2] for name in _MAKERS)

    summary = "code is traced, captured or compiled for every request and thrown away"
    what = """
        `torch.jit.trace`, `torch.jit.script`, `torch.export`, a CUDA graph capture or `torch.compile` in code that
        serves requests, whose result is used in the same function and kept nowhere.
        """
    why = """
        Tracing and scripting take seconds, a capture runs the whole step and allocates a pool for it: the request pays
        for more than it could ever gain. Made once at start-up the same costs nothing.
        """
    fine = """
        - Results that are kept: an attribute, a dictionary by shape, a global, a cached function, a returned value.
        - `torch.compile` of the same function or model finds its earlier code by itself (measured with torch 2.13: one
          compilation for five calls), so that it only costs the wrapper: low confidence.
        """
    safety = "A recommendation only: what to keep it by (shape, device, model) has to be decided."
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
        "https://docs.pytorch.org/docs/stable/generated/torch.jit.trace.html",
    )
    bad = """
        import torch
        from fastapi import FastAPI

        app = FastAPI()
        model = torch.nn.Linear(16, 16).to("cuda").eval()

        @app.post("/embed")
        def embed(values: list) -> list:
            x = torch.tensor([values], device="cuda")
            traced = torch.jit.trace(model, x)
            return traced(x).tolist()
        """
    good = """
        import torch
        from fastapi import FastAPI

        app = FastAPI()
        model = torch.nn.Linear(16, 16).to("cuda").eval()
        traced = torch.jit.trace(model, torch.zeros(1, 16, device="cuda"))

        @app.post("/embed")
        def embed(values: list) -> list:
            return traced(torch.tensor([values], device="cuda")).tolist()
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if isinstance(view.node, ast.Module):
            return
        dotted = view.qualified(node.func) or ""
        verb = _MAKERS.get(dotted)
        if verb is None or view.regions(node) & IDLE or _kept(node, view):
            return
        frequency = view.frequency(node)
        if not frequency.known or not frequency.path:
            return
        sure = Confidence.HIGH if frequency.certainty is Certainty.PROVEN else Confidence.LOW
        if dotted == "torch.compile":
            sure = Confidence.LOW
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` {verb} for every request and the result is thrown away",
            action="make it once at start-up, or keep it by shape",
            confidence=lower(self.confidence, sure),
            frequency=frequency,
            why=("its result is used in this function only", *frequency_reason(frequency)),
        )


def _kept(node: ast.Call, view: FunctionView) -> bool:
    """Whether the result may outlive the function, or a test decides that it is made at all."""
    definition = view.node
    if isinstance(definition, ast.FunctionDef | ast.AsyncFunctionDef):
        if any("cache" in ast.unparse(decorator) or "compile" in ast.unparse(decorator)
               for decorator in definition.decorator_list):  # fmt: skip
            return True
        if node in {part for decorator in definition.decorator_list for part in ast.walk(decorator)}:
            return True
    if any(isinstance(above, ast.If | ast.Try | ast.ExceptHandler | ast.Return) for above in ancestors(view, node)):
        return True
    held = _holders(node, view)
    if held is None:
        return True
    return any(_escapes(use, view) for name in held for use in view.uses(name))


def _holders(node: ast.Call, view: FunctionView) -> tuple[str, ...] | None:
    """Local names that hold what is made; None where something else holds it."""
    parent = view.parent(node)
    if isinstance(parent, ast.withitem):
        graph = node.args[0] if node.args else None
        return (graph.id,) if isinstance(graph, ast.Name) and view.assignments(graph.id) else None
    if isinstance(parent, ast.Call) and parent.func is node:
        return ()  # called on the spot
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1:
        target = parent.targets[0]
        return (target.id,) if isinstance(target, ast.Name) and not _global(target.id, view) else None
    return () if isinstance(parent, ast.Expr) else None


def _global(name: str, view: FunctionView) -> bool:
    return any(name in getattr(statement, "names", ()) for statement in view.nodes(ast.Global, ast.Nonlocal))


def _escapes(use: ast.Name, view: FunctionView) -> bool:
    """Whether a use hands the object itself on: stored, returned, or used by an inner function."""
    parent = view.parent(use)
    if parent is None:
        return True
    if isinstance(parent, ast.Attribute) or (isinstance(parent, ast.Call) and parent.func is use):
        return False
    if isinstance(parent, ast.Call):  # ``torch.cuda.graph(g)``; others may keep what they are given
        return not isinstance(view.parent(parent), ast.withitem)
    return True
