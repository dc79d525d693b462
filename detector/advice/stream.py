"""A completion put together from the events of a stream."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

EVENTS = "text/event-stream"


class Broken(Exception):
    """A stream that ended before the answer did, or that ended in an error; one line says how."""


def assembled(raw: bytes) -> dict[str, Any]:
    """What the server would have sent without streaming, as far as it matters: text, refusal, end, usage.

    Raises :class:`Broken`, and :class:`ValueError`, :class:`TypeError` or :class:`AttributeError` for events that are
    no pieces of a chat completion.
    """
    text: list[str] = []
    refusal: list[str] = []
    usage: Any = None
    reason: Any = None
    any_choice = False
    for event in _events(raw):
        if "error" in event:
            raise Broken(f"the answer ended in an error ({_message(event['error'])})")
        usage = event.get("usage") or usage
        for choice in event.get("choices") or ():
            if choice.get("index", 0) != 0:
                continue
            any_choice = True
            delta = choice.get("delta") or {}
            text += _piece(delta.get("content"))
            refusal += _piece(delta.get("refusal"))
            reason = choice.get("finish_reason") or reason
    if reason is None:
        raise Broken("the answer broke off" if any_choice else "the answer holds nothing")
    message = {"content": "".join(text), "refusal": "".join(refusal)}
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": usage}


def _piece(value: Any) -> list[str]:
    if value is None:
        return []
    if not isinstance(value, str):
        raise TypeError(value)
    return [value]


def _message(error: Any) -> str:
    found = error.get("message") if isinstance(error, dict) else error
    return str(found)[:200]


def _events(raw: bytes) -> Iterator[dict[str, Any]]:
    """The JSON objects of the events up to ``[DONE]``; what stands in no ``data`` field does not count."""
    data: list[bytes] = []
    for line in (*raw.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n"), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            joined, data = b"\n".join(data), []
            if joined.strip() == b"[DONE]":
                return
            try:
                event = json.loads(joined)
            except (ValueError, RecursionError):
                raise Broken("the answer broke off within an event") from None
            if not isinstance(event, dict):
                raise TypeError(event)
            yield event
