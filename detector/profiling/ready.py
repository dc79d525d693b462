"""Whether the user's server is ready: a URL that answers, a port that accepts, or any port that the command listens on.

Probes are single short attempts, so that the caller's loop stays in charge of time and signals. Only addresses that the
user names are asked.
"""

from __future__ import annotations

import contextlib
import http.client
import socket
import ssl
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

from awp_lint.detector.errors import UsageError

_PATIENCE = 2.0  # s for one attempt

Probe = Callable[[], bool]


def split_url(url: str, option: str) -> SplitResult:
    """A URL's parts. Raises :class:`UsageError`, naming the option, for what is no http(s) URL with a host."""
    parts = urlsplit(url)
    try:
        parts.port  # noqa: B018 - reading it is what checks it
    except ValueError as fault:
        raise UsageError(f"{option}: {url!r}: {fault}") from None
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise UsageError(f"{option} takes a URL such as http://127.0.0.1:8000/health, not {url!r}")
    return parts


def connect(parts: SplitResult, timeout: float) -> http.client.HTTPConnection:
    """An unopened connection to a URL's host."""
    host = parts.hostname or ""
    if parts.scheme == "https":
        return http.client.HTTPSConnection(host, parts.port, timeout=timeout, context=ssl.create_default_context())
    return http.client.HTTPConnection(host, parts.port, timeout=timeout)


def target_of(parts: SplitResult) -> str:
    """What the request line names: path and query."""
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")


def url_answers(parts: SplitResult) -> bool:
    """Whether a GET of the URL is answered with success. A server that still loads says 503 or refuses."""
    connection = connect(parts, _PATIENCE)
    try:
        connection.request("GET", target_of(parts))
        return 200 <= connection.getresponse().status < 400
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()


def port_accepts(host: str, port: int) -> bool:
    """Whether a TCP connection to the port is accepted."""
    try:
        with socket.create_connection((host, port), timeout=_PATIENCE):
            return True
    except OSError:
        return False


def listens(pid: int) -> bool:
    """Whether a process or one of its descendants listens on a TCP port. False where that cannot be seen."""
    import psutil

    try:
        root = psutil.Process(pid)
        members = [root, *root.children(recursive=True)]
    except psutil.Error:
        return False
    for member in members:
        with contextlib.suppress(psutil.Error):
            # net_connections was called connections before psutil 6
            found = getattr(member, "net_connections", None) or member.connections
            if any(entry.status == psutil.CONN_LISTEN for entry in found(kind="tcp")):
                return True
    return False


def probe(ready_url: str | None, ready_port: int | None, load_url: str | None, pid: int) -> Probe:
    """The probe that the options ask for: the URL, the port on this machine, the load's own port, or any port."""
    if ready_url is not None:
        parts = split_url(ready_url, "--ready-url")
        return lambda: url_answers(parts)
    if ready_port is not None:
        port = ready_port
        return lambda: port_accepts("localhost", port)
    if load_url is not None:
        target = split_url(load_url, "--load-url")
        host, number = target.hostname or "", target.port or (443 if target.scheme == "https" else 80)
        return lambda: port_accepts(host, number)
    return lambda: listens(pid)


def describe(ready_url: str | None, ready_port: int | None, load_url: str | None) -> str:
    """What is being waited for, for messages."""
    if ready_url is not None:
        return f"{ready_url} to answer"
    if ready_port is not None:
        return f"port {ready_port} to accept"
    if load_url is not None:
        parts = split_url(load_url, "--load-url")
        return f"{parts.netloc} to accept"
    return "the program to listen on a port"
