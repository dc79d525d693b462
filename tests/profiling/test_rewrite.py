"""Marks over several statements: opened before the first, closed after the last, whatever leaves the range."""

from __future__ import annotations

import builtins
from typing import Any

import pytest

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.rewrite import rewrite

SOURCE = b"""\
def f(stop):
    log("before")
    log("one")
    log("two")
    if stop:
        return log("leaving")
    log("three")
    log("after")
"""


def mark(number: int, line: int, end_line: int, end_column: int) -> AgentMark:
    return AgentMark(number, "m.py", "m", "statement", line, 4, end_line, end_column, "f", 1, None)


def record(marks: list[AgentMark], stop: bool, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    seen: list[str] = []

    def close(number: int, value: Any) -> Any:
        seen.append(f"close {number}")
        return value

    monkeypatch.setattr(builtins, "__awp_open__", lambda number: seen.append(f"open {number}"), raising=False)
    monkeypatch.setattr(builtins, "__awp_close__", close, raising=False)
    code, placed = rewrite(SOURCE, "m.py", marks)
    assert placed == {m.number for m in marks}
    namespace: dict[str, Any] = {"log": seen.append}
    exec(code, namespace)
    namespace["f"](stop)
    return seen


def test_a_range_of_statements(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = record([mark(0, 3, 7, 16)], False, monkeypatch)
    assert seen == ["before", "open 0", "one", "two", "three", "close 0", "after"]


def test_a_return_inside_closes_the_range(monkeypatch: pytest.MonkeyPatch) -> None:
    assert record([mark(0, 3, 7, 16)], True, monkeypatch) == ["before", "open 0", "one", "two", "leaving", "close 0"]


def test_a_range_around_a_range_and_a_statement(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = record([mark(0, 3, 7, 16), mark(1, 3, 4, 14), mark(2, 4, 4, 14)], False, monkeypatch)
    assert seen == [
        "before", "open 0", "open 1", "one", "open 2", "two", "close 2", "close 1", "three", "close 0", "after",
    ]  # fmt: skip
