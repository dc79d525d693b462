"""The open-loop load, against small servers on the loopback interface."""

from __future__ import annotations

import contextlib
import http.server
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.httpload import HttpLoad, HttpLoadSpec, percentiles, read_bodies

Answer = Callable[[http.server.BaseHTTPRequestHandler, bytes], None]


@contextlib.contextmanager
def server(answer: Answer, protocol: str = "HTTP/1.1") -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = protocol

        def do_GET(self) -> None:
            answer(self, b"")

        def do_POST(self) -> None:
            answer(self, self.rfile.read(int(self.headers["Content-Length"])))

        def log_message(self, *words: object) -> None:
            pass

    class Quiet(http.server.ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, address: object) -> None:
            pass

    with Quiet(("127.0.0.1", 0), Handler) as running:
        threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        yield f"http://127.0.0.1:{running.server_port}/generate?x=1"
        running.shutdown()


def say(handler: http.server.BaseHTTPRequestHandler, status: int, body: bytes = b"ok") -> None:
    handler.send_response(status)
    handler.send_header("Content-Length", str(len(body)))
    handler.end_headers()
    handler.wfile.write(body)


def wait_for(condition: Callable[[], bool], seconds: float = 10.0) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


def test_bodies_take_turns_and_every_answer_counts() -> None:
    seen: list[tuple[str, bytes]] = []

    def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        seen.append((handler.path, body))
        say(handler, 200)

    with server(answer) as url:
        load = HttpLoad(HttpLoadSpec(url, 300, (b'{"p": 1}', b'{"p": 2}', b"3")))
        load.start()
        wait_for(lambda: len(seen) >= 30)
        load.stop()
    summary = load.summary()
    assert summary["requests"] == summary["answered"] == len(seen)
    assert summary["unfinished"] == summary["dropped"] == 0
    assert summary["errors"] == {} and load.note() is None
    assert {path for path, _ in seen} == {"/generate?x=1"}
    counts = [sum(body == wanted for _, body in seen) for wanted in (b'{"p": 1}', b'{"p": 2}', b"3")]
    assert max(counts) - min(counts) <= 1 and sum(counts) == len(seen)


def test_arrivals_do_not_wait_for_answers() -> None:
    gate = threading.Event()
    waiting: list[int] = []

    def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        waiting.append(1)
        gate.wait(10)
        say(handler, 200)

    with server(answer) as url:
        load = HttpLoad(HttpLoadSpec(url, 200))
        load.start()
        wait_for(lambda: len(waiting) >= 20)  # twenty under way though none was answered
        gate.set()
        load.stop()
    assert load.summary()["answered"] == load.summary()["requests"] >= 20


def test_latency_counts_from_the_time_a_request_was_due() -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        time.sleep(0.1)
        say(handler, 200)

    with server(answer) as url:
        load = HttpLoad(HttpLoadSpec(url, 50))
        load.start()
        wait_for(lambda: load.summary()["answered"] >= 5)
        load.stop()
    assert load.summary()["latency_ms"]["p50"] >= 100


def test_failures_are_counted_by_kind() -> None:
    def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes) -> None:
        say(handler, 503)

    with server(answer) as url:
        load = HttpLoad(HttpLoadSpec(url, 200))
        load.start()
        wait_for(lambda: load.summary()["errors"].get("HTTP 503", 0) >= 5)
        load.stop()
    assert load.summary()["answered"] == 0
    assert load.note() == "every request of the load failed: HTTP 503"

    load = HttpLoad(HttpLoadSpec(url, 200))  # nobody listens there any more
    load.start()
    wait_for(lambda: load.summary()["errors"].get("connection refused", 0) >= 3)
    load.stop()
    assert list(load.summary()["errors"]) == ["connection refused"]


def test_a_server_that_closes_every_connection_is_fine() -> None:
    with server(lambda handler, body: say(handler, 200), protocol="HTTP/1.0") as url:
        load = HttpLoad(HttpLoadSpec(url, 200))
        load.start()
        wait_for(lambda: load.summary()["answered"] >= 20)
        load.stop()
    assert load.summary()["errors"] == {}


def test_answers_that_never_come_are_cut_off_at_the_stop() -> None:
    gate = threading.Event()
    with server(lambda handler, body: gate.wait(20) and None) as url:
        load = HttpLoad(HttpLoadSpec(url, 100))
        load.start()
        wait_for(lambda: load.summary()["requests"] >= 3)
        load.stop(drain=0.1)
        gate.set()
    summary = load.summary()
    assert summary["unfinished"] == summary["requests"] >= 3
    assert summary["errors"] == {} and summary["latency_ms"] is None


def test_same_seed_same_arrivals() -> None:
    gate = threading.Event()
    times: list[list[float]] = []
    for _ in range(2):
        seen: list[float] = []

        def answer(handler: http.server.BaseHTTPRequestHandler, body: bytes, seen: list[float] = seen) -> None:
            seen.append(time.monotonic())
            gate.wait(10)

        with server(answer) as url:
            load = HttpLoad(HttpLoadSpec(url, 100, seed=3))
            load.start()
            wait_for(lambda seen=seen: len(seen) >= 4)  # type: ignore[misc]
            load.stop(drain=0)
        times.append([t - seen[0] for t in seen[:4]])
    gate.set()
    assert times[0] == pytest.approx(times[1], abs=0.5)


def test_percentiles() -> None:
    assert percentiles([]) is None
    assert percentiles([7.0]) == {"p50": 7.0, "p95": 7.0, "p99": 7.0}
    assert percentiles([float(n) for n in range(101)]) == {"p50": 50.0, "p95": 95.0, "p99": 99.0}


def test_bodies_from_the_command_line(tmp_path: Path) -> None:
    one = tmp_path / "one.json"
    one.write_text('{\n  "prompt": "é"\n}\n', encoding="utf-8")
    many = tmp_path / "many.jsonl"
    many.write_text('{"a": 1}\n\n{"a": 2}\n', encoding="utf-8")
    assert read_bodies(None) == ()
    assert read_bodies(['{"x": 1}', f"@{one}", f"@{many}"]) == (
        b'{"x": 1}',
        '{\n  "prompt": "é"\n}\n'.encode(),
        b'{"a": 1}',
        b'{"a": 2}',
    )


@pytest.mark.parametrize("text", ["hello", "{", "@nowhere.json"])
def test_bodies_that_are_refused(text: str) -> None:
    with pytest.raises(UsageError, match="--load-body"):
        read_bodies([text])


@pytest.mark.parametrize("url", ["127.0.0.1:80", "ftp://host/x", "http:///x", "http://host:99999/"])
def test_urls_that_are_refused(url: str) -> None:
    with pytest.raises(UsageError, match="--load-url"):
        HttpLoad(HttpLoadSpec(url, 1))
