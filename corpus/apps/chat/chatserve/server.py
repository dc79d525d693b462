"""HTTP front end: requests are queued, decoded in batches by one thread, and answered as a stream of JSON lines."""

from __future__ import annotations

import json
import logging
import queue
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from chatserve.config import SamplingParams
from chatserve.generate import Engine, Request
from chatserve.retrieval import Reranker
from chatserve.tokenizer import StreamDecoder, Tokenizer

logger = logging.getLogger(__name__)

TEMPLATE = "Use these notes.\n{notes}\nQuestion: {question}\nAnswer:"


class Batcher(threading.Thread):
    """Collects requests for a moment, then has the engine answer them together."""

    def __init__(self, engine: Engine, window: float) -> None:
        super().__init__(name="batcher", daemon=True)
        self.engine = engine
        self.window = window
        self.waiting: queue.Queue[Request | None] = queue.Queue()

    def submit(self, request: Request) -> None:
        self.waiting.put(request)

    def stop(self) -> None:
        self.waiting.put(None)
        self.join()

    def _collect(self) -> list[Request]:
        """The next batch, in the order of the requests' ids; empty when the server stops."""
        first = self.waiting.get()
        if first is None:
            return []
        batch = [first]
        deadline = time.monotonic() + self.window
        while len(batch) < self.engine.max_batch:
            try:
                request = self.waiting.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                break
            if request is None:
                self.waiting.put(None)
                break
            batch.append(request)
        return sorted(batch, key=lambda request: request.id)

    def run(self) -> None:
        while batch := self._collect():
            try:
                self.engine.generate(batch)
            except Exception:
                logger.exception("batch of %d requests failed", len(batch))
                for request in batch:
                    request.events.put({"error": "internal error"})
                    request.events.put(None)


class ChatServer(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(
        self, address: tuple[str, int], batcher: Batcher, reranker: Reranker, tokenizer: Tokenizer, notes: list[str]
    ) -> None:
        super().__init__(address, ChatHandler)
        self.batcher = batcher
        self.reranker = reranker
        self.tokenizer = tokenizer
        self.notes = notes


class ChatHandler(BaseHTTPRequestHandler):
    server: ChatServer

    def log_message(self, format: str, *args: object) -> None:
        logger.debug(format, *args)

    def _send(self, status: int, body: dict[str, object]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def do_GET(self) -> None:
        if self.path == "/health":
            self._send(200, {"status": "ok"})
        elif self.path == "/stats":
            self._send(200, vars(self.server.batcher.engine.stats).copy())
        else:
            self._send(404, {"error": "unknown path"})

    def do_POST(self) -> None:
        if self.path != "/v1/chat":
            self._send(404, {"error": "unknown path"})
            return
        engine = self.server.batcher.engine
        try:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            question = str(body["question"])
            params = SamplingParams.from_body(body, engine.model.config.max_length // 2)
        except (KeyError, TypeError, ValueError) as error:
            self._send(400, {"error": f"bad request: {error}"})
            return
        tokenizer = self.server.tokenizer
        notes = self.server.reranker.best(question, self.server.notes, 2)
        prompt = TEMPLATE.format(notes="\n".join(notes), question=question)
        ids = [tokenizer.bos_id, *tokenizer.encode(prompt)][-(engine.model.config.max_length // 2) :]
        request = Request(int(body.get("id", 0)), ids, params, StreamDecoder(tokenizer), tokenizer.eos_id)
        self.server.batcher.submit(request)
        self.send_response(200)
        self.send_header("Content-Type", "application/x-ndjson")
        self.end_headers()
        while (event := request.events.get()) is not None:
            self.wfile.write(json.dumps(event).encode() + b"\n")
