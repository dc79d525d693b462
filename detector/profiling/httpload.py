"""An open-loop HTTP load: requests leave at their own times, however long the answers take.

Arrivals are a Poisson process of the given rate with a fixed seed, so that two runs send the same requests at the same
offsets. Latency counts from the time at which a request was due, not from when a thread was free to send it: a server
that falls behind shows it. Threads and the backlog are bounded; what exceeds the bound is counted as dropped.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import queue
import random
import socket
import statistics
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.ready import connect, split_url, target_of

_THREADS = 64
_BACKLOG = 1000  # requests that are due and not yet sent
_SAMPLES = 1_000_000
_CLOSED = (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)


@dataclass(frozen=True, slots=True)
class HttpLoadSpec:
    """What to send. Without a body a GET, else a POST of JSON; several bodies take turns."""

    url: str
    rate: float  # requests a second
    bodies: tuple[bytes, ...] = ()
    timeout: float = 120.0  # s for one answer
    seed: int = 0


@dataclass(slots=True)
class Tally:
    """Counts and latencies, in milliseconds from the time a request was due."""

    due: int = 0
    answered: int = 0
    dropped: int = 0
    unfinished: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    total_ms: list[float] = field(default_factory=list)
    first_byte_ms: list[float] = field(default_factory=list)

    def summary(self, rate: float, seconds: float) -> dict[str, Any]:
        """The profile object's ``load``."""
        return {
            "rate": rate,
            "seconds": round(seconds, 3),
            "requests": self.due,
            "answered": self.answered,
            "dropped": self.dropped,
            "unfinished": self.unfinished,
            "errors": dict(self.errors),
            "latency_ms": percentiles(self.total_ms),
            "first_byte_ms": percentiles(self.first_byte_ms),
        }


def percentiles(samples: list[float]) -> dict[str, float] | None:
    """p50, p95 and p99 by linear interpolation; None without samples."""
    if not samples:
        return None
    if len(samples) == 1:
        return dict.fromkeys(("p50", "p95", "p99"), round(samples[0], 3))
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {f"p{n}": round(cuts[n - 1], 3) for n in (50, 95, 99)}


def read_bodies(values: Sequence[str] | None) -> tuple[bytes, ...]:
    """The bodies that ``--load-body`` names: JSON, or ``@FILE`` with one JSON document or JSON Lines.

    Raises :class:`UsageError` for what is not JSON and for files that cannot be read.
    """
    bodies: list[bytes] = []
    for value in values or ():
        if not value.startswith("@"):
            bodies.append(_json(value, "--load-body"))
            continue
        try:
            text = Path(value[1:]).read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as fault:
            reason = fault.strerror if isinstance(fault, OSError) else "not UTF-8"
            raise UsageError(f"--load-body: {value[1:]}: {reason}") from None
        try:
            json.loads(text)
        except ValueError:
            lines = [(n, line) for n, line in enumerate(text.splitlines(), 1) if line.strip()]
            if len(lines) < 2:
                raise UsageError(f"--load-body: {value[1:]}: neither JSON nor JSON Lines") from None
            bodies += [_json(line, f"--load-body: {value[1:]}:{n}") for n, line in lines]
        else:
            bodies.append(text.encode())
    return tuple(bodies)


def _json(text: str, where: str) -> bytes:
    try:
        json.loads(text)
    except ValueError as fault:
        raise UsageError(f"{where}: not JSON: {fault}") from None
    return text.strip().encode()


class HttpLoad:
    """Sends the requests of a spec until it is stopped. ``start``, ``stop`` and ``summary`` from one thread."""

    def __init__(self, spec: HttpLoadSpec) -> None:
        self.spec = spec
        self.parts = split_url(spec.url, "--load-url")
        self.tally = Tally()
        self._lock = threading.Lock()
        self._queue: queue.SimpleQueue[tuple[float, int] | None] = queue.SimpleQueue()
        self._halt = threading.Event()
        self._threads: list[threading.Thread] = []
        self._idle = 0
        self._pending = 0  # due and not finished
        self._cut = False
        self._connections: set[http.client.HTTPConnection] = set()
        self._began = self._ended = 0.0

    def start(self) -> None:
        """Begin sending."""
        self._began = time.monotonic()
        self._dispatcher = threading.Thread(target=self._dispatch, name="awp-load", daemon=True)
        self._dispatcher.start()

    def ended(self) -> bool:
        """Never by itself."""
        return False

    def stop(self, drain: float = 5.0) -> None:
        """Send nothing more; wait up to ``drain`` seconds for the answers that are still due, then cut them off."""
        if not self._began or self._ended:
            return
        self._halt.set()
        self._dispatcher.join()
        self._ended = time.monotonic()
        end = self._ended + drain
        while time.monotonic() < end:
            with self._lock:
                if not self._pending:
                    break
            time.sleep(0.01)
        with self._lock:
            self._cut = True
            self.tally.unfinished = self._pending
            open_now = list(self._connections)
        for _ in self._threads:
            self._queue.put(None)
        for connection in open_now:
            if (sock := connection.sock) is not None:
                with contextlib.suppress(OSError):
                    sock.shutdown(socket.SHUT_RDWR)

    def summary(self) -> dict[str, Any]:
        """Counts, errors and latencies so far."""
        seconds = (self._ended or time.monotonic()) - self._began if self._began else 0.0
        with self._lock:
            return self.tally.summary(self.spec.rate, seconds)

    def note(self) -> str | None:
        """A line for the person where the load did not go as asked."""
        with self._lock:
            tally = self.tally
            failed = sum(tally.errors.values())
            if tally.due and failed == tally.due:
                return f"every request of the load failed: {', '.join(tally.errors)}"
            if failed or tally.dropped:
                kinds = ", ".join(f"{count} {kind}" for kind, count in tally.errors.most_common(3))
                dropped = f"{tally.dropped} not sent, the server fell behind" if tally.dropped else ""
                return f"load: of {tally.due} requests {'; '.join(part for part in (kinds, dropped) if part)}"
        return None

    def _dispatch(self) -> None:
        clock = random.Random(self.spec.seed)
        due, number = time.monotonic(), 0
        while not self._halt.wait(max(0.0, due - time.monotonic())):
            with self._lock:
                self.tally.due += 1
                waiting = self._pending - (len(self._threads) - self._idle)
                if waiting >= _BACKLOG:
                    self.tally.dropped += 1
                else:
                    self._pending += 1
                    self._queue.put((due, number))
                    if self._idle < waiting + 1 and len(self._threads) < _THREADS:
                        self._hire()
            number += 1
            due += clock.expovariate(self.spec.rate)

    def _hire(self) -> None:
        thread = threading.Thread(target=self._work, name="awp-load", daemon=True)
        self._threads.append(thread)
        self._idle += 1
        thread.start()

    def _work(self) -> None:
        connection: http.client.HTTPConnection | None = None
        while (job := self._queue.get()) is not None:
            with self._lock:
                self._idle -= 1
            due, number = job
            connection = self._one(connection, due, number)
            with self._lock:
                self._idle += 1
                self._pending -= 1
        if connection is not None:
            self._close(connection)

    def _one(
        self, connection: http.client.HTTPConnection | None, due: float, number: int
    ) -> http.client.HTTPConnection | None:
        """One request; the connection to use for the next, if it can be used again."""
        bodies = self.spec.bodies
        body = bodies[number % len(bodies)] if bodies else None
        reused = connection is not None
        while True:
            if connection is None:
                connection = connect(self.parts, self.spec.timeout)
                with self._lock:
                    self._connections.add(connection)
            try:
                first, status = self._exchange(connection, body)
            except (OSError, http.client.HTTPException) as fault:
                self._close(connection)
                connection = None
                # The server may have closed an idle connection just as it was taken up again: that says nothing.
                if reused and isinstance(
                    fault, (http.client.RemoteDisconnected, ConnectionResetError, BrokenPipeError)
                ):
                    reused = False
                    continue
                self._count(_words(fault), due, None)
                return None
            self._count("" if 200 <= status < 300 else f"HTTP {status}", due, first)
            if connection.sock is None:  # the answer said that the connection closes
                self._close(connection)
                return None
            return connection

    def _exchange(self, connection: http.client.HTTPConnection, body: bytes | None) -> tuple[float, int]:
        headers = {"Content-Type": "application/json"} if body is not None else {}
        connection.request("GET" if body is None else "POST", target_of(self.parts), body, headers)
        response = connection.getresponse()
        response.read(1)
        first = time.monotonic()
        response.read()
        return first, response.status

    def _count(self, error: str, due: float, first: float | None) -> None:
        now = time.monotonic()
        with self._lock:
            if self._cut:
                return  # already counted as unfinished
            if error:
                self.tally.errors[error] += 1
                return
            self.tally.answered += 1
            if len(self.tally.total_ms) < _SAMPLES:
                self.tally.total_ms.append(1e3 * (now - due))
                if first is not None:
                    self.tally.first_byte_ms.append(1e3 * (first - due))

    def _close(self, connection: http.client.HTTPConnection) -> None:
        connection.close()
        with self._lock:
            self._connections.discard(connection)


def _words(fault: Exception) -> str:
    if isinstance(fault, TimeoutError):
        return "timeout"
    if isinstance(fault, ConnectionRefusedError):
        return "connection refused"
    if isinstance(fault, _CLOSED):
        return "connection closed by the server"
    return type(fault).__name__
