"""What a recorded mark itself costs: taken off again from the times that the parent reads.

A call of 10 microseconds would else read a tenth too long. The cost is measured in the program's own process, with the
very functions that record there, around a call that does some work and behind other work: caches that hold nothing but
the mark make it look half or a third as dear as it is between calls of torch. (Beside torch's own small operators, by
turns: 1.0 to 1.8 us inside the interval; measured in this way 1.0 to 1.3; in warm caches 0.4 to 0.7; one machine.)
"""

from __future__ import annotations

import functools
import json
from time import perf_counter_ns
from types import CodeType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.ring import Ring

MARK = 0x7FFFFFFE  # no mark of a plan, and not the ring's break
_TURNS = 60
_LINE = 2

_SOURCE = """
def probe(call):
    call()
"""


def probe() -> Any:
    """A fresh function ``probe(call)`` that makes the call, on line 3."""
    space: dict[str, Any] = {}
    exec(compile(_SOURCE, "<awp-lint>", "exec"), space)
    return space["probe"]


def mark_on(code: CodeType) -> AgentMark:
    """The mark of the call in :func:`probe`."""
    line = code.co_firstlineno + _LINE - 1
    return AgentMark(MARK, "<awp-lint>", "", "call", line, 4, line, 10, "probe", code.co_firstlineno, None)


def _work() -> tuple[Callable[[], object], Callable[[], None]]:
    """A call of some microseconds, and other work for the time between two.

    Builtin code of many kinds, which keeps the interpreter's lock: after each call of torch our thread would wait for
    it. Made when it is needed: the program's start is none of ours.
    """
    thing = {f"key{n}": [n, n / 3, str(n), {"none": None, "more": [True, n]}] for n in range(12)}
    text = json.dumps(thing)

    def other() -> None:
        json.loads(text)
        json.dumps(thing)
        sorted(text.split(","))
        text.replace("key", "word").upper().partition("WORD7")
        str.format("{} {!r}", 1, text)

    return functools.partial(json.loads, json.dumps({"a": [1, 2.5, "x"], "b": {"c": None}})), other


def measure(
    ring: Ring, marked: Callable[[Callable[[], object]], None], plain: Callable[[Callable[[], object]], None]
) -> tuple[float, float]:
    """``(inner_ns, whole_ns)`` of one execution: what lies inside the recorded interval, and all of it.

    ``marked(call)`` makes one recorded call, ``plain(call)`` the same unrecorded. Medians over turns: any may be
    interrupted.
    """
    call, other = _work()
    inner, whole, bare, alone = [], [], [], []
    for _ in range(_TURNS):
        first = ring.written()
        other()
        began = perf_counter_ns()
        marked(call)
        whole.append(perf_counter_ns() - began)
        other()
        began = perf_counter_ns()
        plain(call)
        bare.append(perf_counter_ns() - began)
        other()
        began = perf_counter_ns()
        call()
        alone.append(perf_counter_ns() - began)
        times = [time for time, code in ring.records(first) if code >> 1 == MARK]
        if len(times) == 2:
            inner.append(times[1] - times[0])
    if not inner:
        return 0.0, 0.0
    timer = min(_empty() for _ in range(_TURNS))
    return max(_middle(inner) - (_middle(alone) - timer), 0.0), max(_middle(whole) - _middle(bare), 0.0)


def _empty() -> int:
    """What the timer shows around nothing."""
    began = perf_counter_ns()
    return perf_counter_ns() - began


def _middle(values: list[int]) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2])
