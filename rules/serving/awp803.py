"""AWP803 unbatched-server."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, Related, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, short
from awp_lint.rules.serving.handlers import own_functions, runs_model, serves

_BATCHES = re.compile(
    r"batch|queue|AsyncLLM|AsyncEngine|vllm|sglang|tensorrt_llm|lmdeploy|litserve|LitAPI|bentoml|tritonclient|openai"
    r"|InferenceClient|grpc|text_generation|ollama|llama_cpp|limit_concurrency",
    re.IGNORECASE,
)


class UnbatchedServer(Rule):
    """A handler that runs the model on its own request alone."""

    id = "AWP803"
    name = "unbatched-server"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 10000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"def ",)
    nodes = (ast.FunctionDef, ast.AsyncFunctionDef)

    summary = "a server runs its model on one request at a time"
    what = """
        Route handlers that call a model, a pipeline or `generate` on their own request, in a file with no sign of
        batching: no queue, no batcher, no serving engine. One finding a file, at the first such call; the other
        handlers are listed with it.
        """
    why = """
        At batch size 1 a forward reads all weights for one request. Requests that arrive meanwhile wait their turn (or
        interleave on the device, which serves them one by one as well), so that throughput stays at that of one user.
        Batched, the same reads serve many requests.
        """
    fine = """
        - A service with one user at a time, or a latency target that no wait for a batch fits: silence the finding and
          say so.
        - Batching by a gateway, an engine or another process.
        """
    safety = """
        No automatic rewrite: collect requests for a few milliseconds in an `asyncio.Queue` and run them as one batch,
        or put an engine with continuous batching behind the handler.
        """
    references = (
        "https://huggingface.co/docs/transformers/pipeline_webserver",
        "https://docs.ray.io/en/latest/serve/advanced-guides/dyn-req-batch.html",
    )
    bad = """
        import torch
        from fastapi import FastAPI
        from transformers import AutoModel, AutoTokenizer

        app = FastAPI()
        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @app.post("/embed")
        @torch.inference_mode()
        def embed(text: str) -> list[float]:
            inputs = tokenizer(text, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[0, 0].tolist()
        """
    good = """
        import asyncio
        import torch
        from fastapi import FastAPI
        from transformers import AutoModel, AutoTokenizer

        app = FastAPI()
        tokenizer = AutoTokenizer.from_pretrained("encoder")
        model = AutoModel.from_pretrained("encoder").to("cuda").eval()
        queue: asyncio.Queue = asyncio.Queue()

        @app.post("/embed")
        async def embed(text: str) -> list[float]:
            future = asyncio.get_running_loop().create_future()
            await queue.put((text, future))
            return await future

        @torch.inference_mode()
        def run(texts: list[str]) -> list[list[float]]:
            inputs = tokenizer(texts, padding=True, return_tensors="pt").to("cuda")
            return model(**inputs).last_hidden_state[:, 0].tolist()
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if node is not view.node or not serves(view) or _BATCHES.search(file.text):
            return
        call = _model_call(view, file)
        if call is None:
            return
        handlers = [other for other in file.functions() if serves(other)]
        calls = {id(other): _model_call(other, file) for other in handlers}
        first = next((other for other in handlers if calls[id(other)] is not None), None)
        if first is None or first.qualname != view.qualname:
            return
        frequency = view.frequency(call)
        if Level.ITEM in frequency.path or view.loops(call):
            return
        name = short(call.func, 40)
        yield Candidate(
            node=call,
            message=f"`{name}(...)` runs for one request alone: nothing in this server forms batches",
            action="collect requests in a queue and run them as one batch, or put a batching engine behind the handler",
            confidence=self.confidence,
            frequency=frequency,
            why=(f"`{view.qualname}` handles one request", *frequency_reason(frequency)),
            related=tuple(
                Related(other.path, c.lineno, f"`{other.qualname}` does so too")
                for other in handlers
                if other is not first and (c := calls[id(other)]) is not None
            )[:6],
        )


def _model_call(view: FunctionView, file: FileView) -> ast.Call | None:
    """The first call in a handler that runs a model, itself or through a function of this file."""
    for call in view.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        if runs_model(call, view):
            return call
        for other in own_functions(call, view, file):
            if any(isinstance(inner, ast.Call) and runs_model(inner, other) for inner in other.nodes(ast.Call)):
                return call
    return None
