"""An OpenAI-compatible server on this machine whose answers are scripted. It keeps what it was asked."""

from __future__ import annotations

import contextlib
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class Reply:
    """How the server answers. ``raw`` replaces the whole body; ``endless`` never ends it; ``cut`` breaks off."""

    content: str | None = None
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None
    finish: str = "stop"
    refusal: str | None = None
    endless: float | None = None  # seconds between pieces
    cut: bool = False
    delay: float = 0.0
    events: list[Any] | None = None  # sent as a stream instead; bytes stand as they are


def streamed(text: str, size: int = 7, usage: int | None = 100, **last: Any) -> Reply:
    """The text as a stream of pieces, with an end and, if there is one, the usage behind it."""
    pieces = [text[at : at + size] for at in range(0, len(text), size)]
    events: list[Any] = [{"choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]}]
    events += [{"choices": [{"index": 0, "delta": {"content": piece}}]} for piece in pieces]
    events.append({"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", **last}]})
    if usage is not None:
        events.append({"choices": [], "usage": {"total_tokens": usage}})
    return Reply(events=[*events, b"[DONE]"])


def error(status: int, message: str, **headers: str) -> Reply:
    body = json.dumps({"error": {"message": message}}).encode()
    return Reply(status=status, raw=body, headers={k.replace("_", "-"): v for k, v in headers.items()})


Script = Callable[[dict[str, Any]], Reply]


@dataclass
class FakeLlm:
    url: str
    requests: list[dict[str, Any]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    script: Script = lambda body: Reply("{}")

    def answers(self, *replies: Reply) -> None:
        """These one after the other, the last one for ever."""
        waiting = list(replies)

        def script(body: dict[str, Any]) -> Reply:
            return waiting.pop(0) if len(waiting) > 1 else waiting[0]

        self.script = script

    @property
    def sent(self) -> str:
        return json.dumps(self.requests, ensure_ascii=False)


@contextlib.contextmanager
def fake_llm() -> Iterator[FakeLlm]:
    stopping = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.requests.append(body)
            state.keys.append(self.headers.get("Authorization", ""))
            with contextlib.suppress(OSError):
                self._reply(state.script(body))

        def _reply(self, reply: Reply) -> None:
            stopping.wait(reply.delay)
            kind = "application/json"
            if reply.raw is not None:
                data = reply.raw
            elif reply.events is not None:
                kind = "text/event-stream; charset=utf-8"
                rows = [e if isinstance(e, bytes) else json.dumps(e).encode() for e in reply.events]
                data = b"".join(b"data: " + row + b"\n\n" for row in rows)
            else:
                message = {"role": "assistant", "content": reply.content, "refusal": reply.refusal}
                usage = {"prompt_tokens": 90, "completion_tokens": 10, "total_tokens": 100}
                choice = {"index": 0, "message": message, "finish_reason": reply.finish}
                data = json.dumps(
                    {"id": "1", "object": "chat.completion", "choices": [choice], "usage": usage}
                ).encode()
            self.send_response(reply.status)
            for name, value in {"Content-Type": kind, **reply.headers}.items():
                self.send_header(name, value)
            length = len(data) + 1000 if reply.cut else 10**12 if reply.endless is not None else len(data)
            self.send_header("Content-Length", str(length))
            self.end_headers()
            self.wfile.write(data)
            if reply.cut:
                self.close_connection = True
            while reply.endless is not None and not stopping.is_set():
                self.wfile.write(b" " * 1000)
                self.wfile.flush()
                time.sleep(reply.endless)

        def log_message(self, format: str, *args: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    state = FakeLlm(f"http://127.0.0.1:{server.server_port}/v1")
    thread = threading.Thread(target=server.serve_forever, args=(0.02,), daemon=True)
    thread.start()
    try:
        yield state
    finally:
        stopping.set()
        server.shutdown()
        server.server_close()
