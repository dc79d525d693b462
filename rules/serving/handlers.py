"""Request handlers: which functions are, and which run on an event loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.semantics.values import Certainty, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind, Region
from awp_lint.rules.batching.calls import model_call
from awp_lint.rules.common import callee

_ROUTES = frozenset({
    "get", "post", "put", "patch", "delete", "route", "websocket", "websocket_route", "api_route", "fastapi_endpoint",
    "web_endpoint", "endpoint",
})  # fmt: skip
#: Classes whose instances run a model when called.
_PIPELINES = ("transformers.Pipeline", "transformers.pipelines.", "diffusers.")


def is_route(view: FunctionView) -> bool:
    """Whether a decorator of the function registers it for requests."""
    node = view.node
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    for decorator in node.decorator_list:
        target = decorator.func if isinstance(decorator, ast.Call) else decorator
        if isinstance(target, ast.Attribute) and target.attr in _ROUTES:
            return True
    return False


def on_event_loop(view: FunctionView) -> bool:
    """Whether the function is a coroutine that serves requests: a route, one that a framework's contract calls, or one
    that works off a queue."""
    if not isinstance(view.node, ast.AsyncFunctionDef):
        return False
    if view.regions(view.node) & (Region.TEST | Region.TIMED):
        return False
    if is_route(view):
        return True
    frequency = view.frequency(view.node)
    return frequency.certainty is Certainty.PROVEN and (Level.REQUEST in frequency.path or _works_off(view))


def _works_off(view: FunctionView) -> bool:
    """Whether a coroutine works off a queue for ever: ``while True: batch = await self.gather()``."""
    return any(
        isinstance(loop, ast.While)
        and isinstance(loop.test, ast.Constant)
        and view.loop_kind(loop) is LoopKind.REQUESTS
        and any(isinstance(part, ast.Await) for part in ast.walk(loop.body[0]))
        for loop in view.nodes(ast.While)
    )


def serves(view: FunctionView) -> bool:
    """Whether the function handles one request, on an event loop or in a thread."""
    if not is_route(view) and not on_event_loop(view):
        return False
    return not view.regions(view.node) & (Region.TEST | Region.TIMED)


def runs_model(call: ast.Call, view: FunctionView) -> bool:
    """Whether a call runs a whole model: a module, a pipeline, ``generate`` and its kind."""
    if model_call(call, view) is not None:
        return True
    value = view.value(call.func)
    if value.cls is not None and value.cls.startswith(_PIPELINES) and value.kind in (Kind.INSTANCE, Kind.MODULE):
        return True
    if isinstance(call.func, ast.Attribute) and call.func.attr in ("encode", "predict", "transcribe"):
        owner = view.value(call.func.value).cls or ""
        return owner.startswith(("sentence_transformers.", "whisper.", "ultralytics.", "faster_whisper."))
    return False


def own_functions(call: ast.Call, view: FunctionView, file: FileView) -> Iterator[FunctionView]:
    """The functions of this file that a call runs, coroutines and generators left out."""
    wanted = set(view.targets(call))
    if not wanted:
        return
    for other in file.functions():
        name = f"{other.module}.{other.qualname}".lstrip(".")
        if name in wanted and isinstance(other.node, ast.FunctionDef) and not _yields(other):
            yield other


def _yields(view: FunctionView) -> bool:
    return bool(view.nodes(ast.Yield, ast.YieldFrom))


def awaited(call: ast.Call, view: FunctionView) -> bool:
    """Whether the call makes a coroutine or an asynchronous generator rather than doing its work at once."""
    child: ast.AST = call
    parent = view.parent(call)
    while isinstance(parent, ast.Call | ast.Starred | ast.List | ast.Tuple | ast.IfExp) and child is not getattr(
        parent, "func", None
    ):
        if isinstance(parent, ast.Call) and callee(parent) in _SCHEDULERS:
            return True
        child, parent = parent, view.parent(parent)
    if isinstance(parent, ast.Await | ast.AsyncFor | ast.AsyncWith | ast.withitem):
        return True
    if isinstance(parent, ast.comprehension):
        return bool(parent.is_async)
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Name):
        return any(_waits_for(use, view) for use in view.uses(parent.targets[0].id))
    return False


_SCHEDULERS = frozenset({
    "create_task", "ensure_future", "gather", "wait", "wait_for", "shield", "run_coroutine_threadsafe", "as_completed",
    "StreamingResponse", "EventSourceResponse", "iterate_in_threadpool", "aiter",
})  # fmt: skip


def _waits_for(use: ast.Name, view: FunctionView) -> bool:
    parent = view.parent(use)
    if isinstance(parent, ast.Await | ast.AsyncFor):
        return True
    if isinstance(parent, ast.comprehension):
        return bool(parent.is_async)
    if isinstance(parent, ast.Attribute) and parent.attr in ("__anext__", "__aiter__", "asend", "aclose"):
        return True
    return isinstance(parent, ast.Call) and callee(parent) in _SCHEDULERS
