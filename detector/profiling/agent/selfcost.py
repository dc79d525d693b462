"""What a recorded mark itself costs: taken off again from the times that the parent reads.

A call of 10 microseconds would else read a tenth too long. The cost is measured in the program's own process, with the
very functions that record there, on a call that does nothing. Caches are warm there, so it is a lower bound.
"""

from __future__ import annotations

from time import perf_counter_ns
from types import CodeType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.ring import Ring

MARK = 0x7FFFFFFE  # no mark of a plan, and not the ring's break
CALLS = 200  # that ``marked`` and ``plain`` are to make
_TURNS = 5
_LINE = 3

_SOURCE = """
def probe(number, call):
    for _ in range(number):
        call()
"""


def probe() -> Any:
    """A fresh function ``probe(number, call)`` that makes so many calls, on line 4."""
    space: dict[str, Any] = {}
    exec(compile(_SOURCE, "<awp-lint>", "exec"), space)
    return space["probe"]


def mark_on(code: CodeType) -> AgentMark:
    """The mark of the call in :func:`probe`."""
    line = code.co_firstlineno + _LINE - 1
    return AgentMark(MARK, "<awp-lint>", "", "call", line, 8, line, 14, "probe", code.co_firstlineno, None)


def nothing() -> None:
    """What is called."""


def measure(ring: Ring, marked: Callable[[], None], plain: Callable[[], None]) -> tuple[float, float]:
    """``(inner_ns, whole_ns)`` of one execution: what lies inside the recorded interval, and all of it.

    ``marked`` makes 200 recorded calls, ``plain`` the same ones unrecorded. Of several turns the cheapest counts, since
    any may be interrupted.
    """
    plain()
    marked()
    inner, whole, bare = [], [], []
    for _ in range(_TURNS):
        first = ring.written()
        began = perf_counter_ns()
        marked()
        middle = perf_counter_ns()
        plain()
        whole.append((middle - began) / CALLS)
        bare.append((perf_counter_ns() - middle) / CALLS)
        times = [time for time, code in ring.records(first) if code >> 1 == MARK]
        spans = sorted(close - opened for opened, close in zip(times[::2], times[1::2]))
        if spans:
            inner.append(spans[len(spans) // 2])
    if not inner:
        return 0.0, 0.0
    call = min(bare)
    return max(min(inner) - call, 0.0), max(min(whole) - call, 0.0)
