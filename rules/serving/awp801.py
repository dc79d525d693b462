"""AWP801 blocking-handler."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, Import, MarkKind, Related, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, prepares_on_host, short
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.serving.blocking import Blocking, blocking
from awp_lint.rules.serving.handlers import is_route, on_event_loop

_ENGINES = re.compile(r"AsyncLLMEngine|AsyncLLM\b|AsyncOpenAI|AsyncInferenceClient|AsyncEngine\b")


class BlockingHandler(Rule):
    """Work that blocks, done on the event loop."""

    id = "AWP801"
    name = "blocking-handler"
    root_cause = RootCause.SCHEDULING
    cost_us = 20000.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"async def",)
    nodes = (ast.AsyncFunctionDef,)

    summary = "a coroutine handler blocks its event loop"
    what = """
        In an `async` route or a coroutine that a route runs: calls of models, pipelines and `generate`, loading,
        decoding of images, audio and video, `requests`, `time.sleep`, device reads, and calls of the file's own
        functions that do one of these; the same in a task that works off a queue. One finding a handler, at the first
        such call; the others are listed with it.
        """
    why = """
        While the call runs, the event loop runs nothing else: no other request is read, batched, cancelled or answered,
        health checks time out, and the next request reaches the device only after this one's answer is on its way.
        """
    fine = """
        - `def` handlers of FastAPI and Starlette, which run in a thread pool.
        - Awaited calls, asynchronous engines and clients, work handed to a thread or an executor.
        - Generators that a streaming response iterates: it does so in a thread when they are synchronous.
        - Tokenising a short text alone: shown at low confidence.
        """
    safety = """
        Unsafe: the call moves to a thread (`await asyncio.to_thread(...)`), so that requests overlap; what it uses must
        bear that. Not offered inside `inference_mode` or `no_grad`, which do not reach into another thread.
        """
    references = (
        "https://fastapi.tiangolo.com/async/",
        "https://docs.python.org/3/library/asyncio-dev.html#running-blocking-code",
        "lm-sys/FastChat#2562 generation in a route moved to a thread",
    )
    bad = """
        import torch
        from fastapi import FastAPI
        from transformers import AutoModelForCausalLM, AutoTokenizer

        app = FastAPI()
        tokenizer = AutoTokenizer.from_pretrained("lm")
        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()

        @app.post("/complete")
        async def complete(prompt: str) -> str:
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            tokens = model.generate(**inputs, max_new_tokens=64)
            return tokenizer.decode(tokens[0])
        """
    good = """
        import asyncio
        import torch
        from fastapi import FastAPI
        from transformers import AutoModelForCausalLM, AutoTokenizer

        app = FastAPI()
        tokenizer = AutoTokenizer.from_pretrained("lm")
        model = AutoModelForCausalLM.from_pretrained("lm").to("cuda").eval()

        def run(prompt: str) -> str:
            inputs = tokenizer(prompt, return_tensors="pt").to("cuda")
            tokens = model.generate(**inputs, max_new_tokens=64)
            return tokenizer.decode(tokens[0])

        @app.post("/complete")
        async def complete(prompt: str) -> str:
            return await asyncio.to_thread(run, prompt)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if node is not view.node or not on_event_loop(view):
            return
        found = [b for call in view.nodes(ast.Call) if (b := _in_handler(call, view, file)) is not None]
        if not found:
            return
        first = next((b for b in found if b.heavy and b.sure), None) or next((b for b in found if b.heavy), found[0])
        frequency = view.frequency(first.call)
        confidence = Confidence.HIGH if first.sure and is_route(view) else Confidence.MEDIUM
        if not first.heavy:
            confidence = Confidence.LOW
        if not first.sure and (_ENGINES.search(file.text) or prepares_on_host(view)):
            confidence = Confidence.LOW
        name = short(first.call.func, 40)
        yield Candidate(
            node=first.call,
            message=f"`{name}(...)` {first.what} on the event loop, which serves no other request meanwhile",
            action="wait with `await asyncio.sleep(...)`"
            if view.qualified(first.call.func) == "time.sleep"
            else f"run it in a thread: `await asyncio.to_thread({name}, ...)`",
            confidence=confidence,
            frequency=frequency,
            why=(f"`{view.qualname}` is a coroutine that serves requests", *frequency_reason(frequency)),
            related=tuple(
                Related(view.path, b.call.lineno, f"`{short(b.call.func, 40)}(...)` {b.what} too")
                for b in found
                if b is not first
            )[:6],
            data=first,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        if not isinstance(found, Blocking) or candidate.confidence is Confidence.LOW:
            return None
        call, view = found.call, definition.view
        in_comprehension = any(isinstance(loop, ast.comprehension) for loop in view.loops(call))
        if view.regions(call) & Region.INFERENCE or in_comprehension:
            return None
        if any(isinstance(part, ast.Await | ast.Yield | ast.NamedExpr) for part in ast.walk(call.func)):
            return None
        definition.node(call)
        source = definition.source.text
        end = definition.range(call)[1]
        opened = source.index("(", definition.range(call.func)[1])
        inside = source[opened + 1 : end - 1]
        separator = ", " if inside.strip() else ""
        if inside.startswith(("\n", "\r")):
            separator = ","
        new = f"await {_asyncio(definition)}.to_thread({definition.text(call.func)}{separator}{inside})"
        if view.qualified(call.func) == "time.sleep":
            new = f"await {_asyncio(definition)}.sleep({inside})"
        if _binds_tighter(view.parent(call), call):
            new = f"({new})"
        return Fix(
            title=f"run `{short(call.func, 40)}` in a thread",
            safety=Safety.UNSAFE,
            edits=(definition.replace(call, new),),
            effects=(Effect.TIMING,),
            requires=("requests may overlap in what it uses",),
        )


def _in_handler(call: ast.AST, view: FunctionView, file: FileView) -> Blocking | None:
    assert isinstance(call, ast.Call)
    if view.regions(call) & (Region.ERROR | Region.DEBUG):
        return None
    return blocking(call, view, file)


def _binds_tighter(parent: ast.AST | None, call: ast.Call) -> bool:
    """Whether ``await`` in the call's place would need brackets."""
    if isinstance(parent, ast.Attribute):
        return True
    if isinstance(parent, ast.Subscript):
        return parent.value is call
    if isinstance(parent, ast.Call):
        return parent.func is call
    return isinstance(parent, ast.BinOp | ast.UnaryOp | ast.Starred)


def _asyncio(definition: Definition) -> str:
    """How the file can spell the asyncio module."""
    for local, meaning in definition.file.imports.items():
        if meaning == "asyncio":
            return local
    definition.imports.add(Import("asyncio"))
    return "asyncio"
