"""Asking an OpenAI-compatible endpoint for JSON of a given schema, within bounds.

The ``openai`` package builds and sends the requests; it is imported when the first one is made. Answers are asked for
as a stream, which proxies do not cut for silence (a server may send them whole). They are read piece by piece, so that
neither their size nor the time they take is the server's to decide, and are nothing but data of the schema: whatever
else they hold is an error.
"""

from __future__ import annotations

import json
import random
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from awp_lint.detector.advice.budget import Budget
from awp_lint.detector.advice.settings import HOSTED, KEY, LlmSettings
from awp_lint.detector.advice.stream import EVENTS, Broken, assembled

MAX_BYTES = 1_000_000  # of an answer with its wrapping
_WRAPPING = 8  # times as much in a stream, where each word has a wrapping of its own
_TRIES = 3
_LONGEST_PAUSE = 20.0  # s, whatever the server asks for
_RETRIED = (408, 409, 429)
_THOUGHT = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)
_FENCED = re.compile(r"\A\s*```(?:json)?\s*\n(.*)\n\s*```\s*\Z", re.DOTALL)


class LlmError(Exception):
    """An answer that cannot be had; one line. ``final``: no other question would fare better.

    ``spent``: for the budget alone is it final, what is under way may still come.
    """

    def __init__(self, message: str, final: bool = False, spent: bool = False) -> None:
        super().__init__(message)
        self.final = final
        self.spent = spent


@dataclass(frozen=True, slots=True)
class Question:
    """One request. ``schema`` is the JSON schema of the answer, ``sample`` tells repeated questions apart."""

    model: str
    messages: tuple[tuple[str, str], ...]  # (role, text)
    name: str
    schema: Mapping[str, Any]
    max_tokens: int
    sample: int = 0

    @property
    def size(self) -> int:
        """About how many tokens it may cost, answer included; never too few."""
        return sum(len(text.encode()) for _, text in self.messages) // 3 + self.max_tokens + 200

    def payload(self) -> dict[str, Any]:
        """The body of the request."""
        return {
            "model": self.model,
            "messages": [{"role": role, "content": text} for role, text in self.messages],
            "max_tokens": self.max_tokens,
            "temperature": 0.0 if self.sample == 0 else 0.7,
            "seed": self.sample,
            "stream": True,
            "stream_options": {"include_usage": True},
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": self.name, "strict": True, "schema": _portable(self.schema)},
            },
        }


def _portable(schema: Any) -> Any:
    """A schema without bounds on lengths: the hosted service knows none of them, and llama.cpp no large ones.

    An answer is held to them when it is here.
    """
    if isinstance(schema, Mapping):
        return {name: _portable(part) for name, part in schema.items() if name not in ("maxLength", "maxItems")}
    return [_portable(part) for part in schema] if isinstance(schema, list) else schema


class Client:
    """One endpoint. Raises :class:`LlmError` (final) where no request can be made at all."""

    def __init__(self, settings: LlmSettings, budget: Budget) -> None:
        if settings.key is None and settings.base_url == HOSTED:
            raise LlmError(f"no key: set {KEY} or OPENAI_API_KEY, or name a server of yours by --llm-base-url", True)
        try:
            import jsonschema  # noqa: F401  (what answers are checked with)
            import openai
        except ImportError as error:
            raise LlmError(f"{error.name} is missing: pip install 'awp-lint[llm]'", True) from None
        self._openai = openai
        self._settings = settings
        self._budget = budget
        self._stop = threading.Event()
        self._unsupported: set[str] = set()  # parts of a request that this server does not know
        self._client = openai.OpenAI(
            api_key=settings.key or "none",
            base_url=settings.base_url,
            timeout=settings.timeout,
            max_retries=0,
            # Code goes where the user said and nowhere else.
            http_client=openai.DefaultHttpxClient(follow_redirects=False),
        )

    def close(self) -> None:
        """Break off what is under way."""
        self._stop.set()
        self._client.close()

    def ask(self, question: Question) -> dict[str, Any]:
        """The answer, valid by the schema. Raises :class:`LlmError`."""
        failure = LlmError("no answer")
        for attempt in range(_TRIES + len(_OPTIONAL)):
            if self._stop.is_set():
                raise LlmError("stopped", True)
            if not self._budget.take(question.size):
                raise LlmError(self._budget.spent, True, spent=True)
            used = question.size  # of an answer that is of no use nobody knows
            try:
                text, used = self._once(question)
            except _Again as again:
                used = 0
                failure = LlmError(str(again))
                if again.at_once:
                    continue
                if attempt + 1 >= _TRIES:
                    break
                pause = again.after or 2.0**attempt * random.uniform(0.5, 1.0)
            else:
                return parsed(text, question.schema)
            finally:
                self._budget.settle(question.size, used)
            if not self._pause(pause):
                break
        raise failure

    def _pause(self, seconds: float) -> bool:
        """Wait before the next try; False where the time would be over."""
        seconds = min(seconds, _LONGEST_PAUSE)
        if seconds >= self._budget.left():
            return False
        return not self._stop.wait(seconds)

    def _once(self, question: Question) -> tuple[str, int]:
        """The text of one answer and the tokens it cost."""
        openai = self._openai
        body = question.payload()
        for part in self._unsupported:
            if part == "max_tokens":
                body["max_completion_tokens"] = body["max_tokens"]
            del body[part]
        limit = max(min(self._settings.timeout, self._budget.left()), 0.1)
        try:
            with self._client.chat.completions.with_streaming_response.create(**body, timeout=limit) as response:
                streamed = response.headers.get("content-type", "").partition(";")[0].strip().lower() == EVENTS
                most = MAX_BYTES * (_WRAPPING if streamed else 1)
                raw = self._body(response, time.monotonic() + limit, most)
        except openai.APITimeoutError:
            raise LlmError(f"{question.model}: no answer in {limit:.0f} s") from None
        except openai.APIConnectionError as error:
            if self._stop.is_set():
                raise LlmError("stopped", True) from None
            cause = error.__cause__ or error
            raise LlmError(f"{self._settings.base_url}: no connection ({_line(cause)})", True) from None
        except openai.APIStatusError as error:
            self._refused(error, question)
        except (LlmError, _Again):
            raise
        except Exception as error:  # the transport's own, while the answer is read
            raise _Again(f"{question.model}: the answer broke off ({type(error).__name__})") from None
        return _content(raw, streamed, question)

    def _body(self, response: Any, end: float, most: int) -> bytes:
        pieces = bytearray()
        for piece in response.iter_bytes():
            pieces += piece
            if len(pieces) > most:
                raise LlmError(f"an answer of more than {most // 1_000_000} MB was cut off")
            if time.monotonic() > end:
                raise LlmError("an answer that did not end in time was cut off")
            if self._stop.is_set():
                raise LlmError("stopped", True)
        return bytes(pieces)

    def _refused(self, error: Any, question: Question) -> None:
        """What an error status means. Always raises."""
        status = error.status_code
        words = _line(error)
        if status in _RETRIED or status >= 500:
            raise _Again(f"{question.model}: HTTP {status} ({words})", _retry_after(error))
        if status in (400, 422):
            for part, mentions in _OPTIONAL.items():
                if part not in self._unsupported and any(word in words for word in mentions):
                    self._unsupported.add(part)
                    raise _Again(words, at_once=True)
            raise LlmError(f"{question.model}: HTTP {status} ({words})")
        if status == 413:
            raise LlmError(f"{question.model}: too long for the server")
        raise LlmError(f"{self._settings.base_url}, {question.model}: HTTP {status} ({words})", True)


# Parts that not every server takes, and the words by which one says so.
_OPTIONAL: dict[str, tuple[str, ...]] = {
    "response_format": ("response_format", "schema", "guided", "grammar"),
    "max_tokens": ("max_completion_tokens",),
    "temperature": ("temperature",),
    "seed": ("seed",),
    "stream_options": ("stream_options", "include_usage"),
    "stream": ("stream",),
}


class _Again(Exception):
    """Worth another try, ``after`` seconds or at once."""

    def __init__(self, message: str, after: float | None = None, at_once: bool = False) -> None:
        super().__init__(message)
        self.after = after
        self.at_once = at_once


def _retry_after(error: Any) -> float | None:
    try:
        seconds = float(error.response.headers.get("retry-after", ""))
    except ValueError:
        return None
    return seconds if 0 <= seconds < 3600 else None


def _line(error: BaseException) -> str:
    """An error's words on one line, bounded: a server may say anything."""
    text = " ".join(str(error).split())
    return "".join(c for c in text if c.isprintable())[:200]


def _content(raw: bytes, streamed: bool, question: Question) -> tuple[str, int]:
    """The text within a completion, and its tokens."""
    try:
        document = assembled(raw) if streamed else json.loads(raw)
        choice = document["choices"][0]
        message = choice["message"]
        text = message.get("content")
        reason = choice.get("finish_reason")
        refusal = message.get("refusal")
    except Broken as error:
        raise _Again(f"{question.model}: {_line(error)}") from None
    except (ValueError, RecursionError):
        raise _Again(f"{question.model}: the answer is no JSON (broken off?)") from None
    except (LookupError, TypeError, AttributeError):
        raise LlmError(f"{question.model}: the answer is no chat completion") from None
    if refusal:
        raise LlmError(f"{question.model}: refused to answer")
    if reason == "length":
        raise LlmError(f"{question.model}: the answer is longer than {question.max_tokens} tokens")
    if not isinstance(text, str) or not text.strip():
        raise LlmError(f"{question.model}: an empty answer")
    usage = document.get("usage")
    total = usage.get("total_tokens") if isinstance(usage, dict) else None
    if type(total) is not int or not 0 <= total <= 10_000_000:
        total = question.size - question.max_tokens + len(raw) // 3
    return text, total


def parsed(text: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    """The JSON object in an answer, valid by the schema. Raises :class:`LlmError`."""
    import jsonschema

    body = _THOUGHT.sub("", text)
    fenced = _FENCED.match(body)
    try:
        data = json.loads(fenced.group(1) if fenced else body, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        raise LlmError("the answer is no JSON") from None
    fault = jsonschema.exceptions.best_match(jsonschema.Draft202012Validator(schema).iter_errors(data))
    if fault is not None:
        where = "/".join(str(part) for part in fault.absolute_path) or "the whole"
        raise LlmError(f"the answer does not fit the schema at {where} ({fault.validator})")
    assert isinstance(data, dict)
    return data


def _no_constant(name: str) -> Any:
    raise ValueError(name)
