"""What a recorded mark itself costs: taken off again from the times that the parent reads.

A call of 10 microseconds would else read a tenth too long. The cost is measured in the program's own process, with the
very functions that record there, twice: behind other work, which drives the mark's code and data out of the nearest
caches as calls of torch do, and directly behind another mark, as in a loop over elements. The first costs about twice
the second, and which of them an execution paid shows in the time since its thread's last record.
"""

from __future__ import annotations

import json
from time import perf_counter_ns
from types import CodeType
from typing import Any, Callable, NamedTuple

from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.ring import Ring

MARK = 0x7FFFFFFE  # no mark of a plan, and not the ring's break
_TURNS = 60
_SWEPT = 1 << 18  # bytes: more than the nearest cache holds
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


class Cost(NamedTuple):
    """What one recorded execution costs, in ns: inside its interval and in all, behind other work and behind a mark."""

    inner: float
    whole: float
    inner_near: float
    whole_near: float


NOTHING = Cost(0.0, 0.0, 0.0, 0.0)


def _work() -> tuple[Callable[[], object], Callable[[], object]]:
    """A call of a fraction of a microsecond, and other work for the time between two.

    Builtin code of many kinds, which keeps the interpreter's lock: after each call of torch our thread would wait for
    it. Made when it is needed: the program's start is none of ours.
    """
    thing = {f"key{n}": [n, n / 3, str(n), {"none": None, "more": [True, n]}] for n in range(12)}
    text = json.dumps(thing)
    source = "a = [1, 2.5, 'x']\nfor b in a:\n    print(b + 1 if b else None)\n"
    data = bytearray(_SWEPT)

    def other() -> None:
        json.loads(text)
        json.dumps(thing)
        sorted(text.split(","))
        text.replace("key", "word").upper().partition("WORD7")
        compile(source, "<awp-lint>", "exec")
        data.count(7)

    return list(range(8)).copy, other


def measure(
    ring: Ring, marked: Callable[[Callable[[], object]], None], plain: Callable[[Callable[[], object]], None]
) -> Cost:
    """What one execution costs.

    ``marked(call)`` makes one recorded call, ``plain(call)`` the same unrecorded. Medians over turns: any may be
    interrupted.
    """
    call, other = _work()

    def recorded(whole: list[int], inner: list[int]) -> None:
        first = ring.written()
        began = perf_counter_ns()
        marked(call)
        whole.append(perf_counter_ns() - began)
        times = [time for time, code in ring.records(first) if code >> 1 == MARK]
        if len(times) == 2:
            inner.append(times[1] - times[0])

    def timed(made: Callable[[], object], into: list[int]) -> None:
        began = perf_counter_ns()
        made()
        into.append(perf_counter_ns() - began)

    far: tuple[list[int], ...] = ([], [], [], [])  # whole, inside, the plain function, the call alone
    near: tuple[list[int], ...] = ([], [], [], [])
    for _ in range(_TURNS):
        for lists, before in ((far, other), (near, lambda: marked(call))):
            before()
            recorded(lists[0], lists[1])
        for lists, before in ((far, other), (near, lambda: plain(call))):
            before()
            timed(lambda: plain(call), lists[2])
        for lists, before in ((far, other), (near, call)):
            before()
            timed(call, lists[3])
    timer = min(_empty() for _ in range(_TURNS))
    costs = [_cost(lists, timer) for lists in (far, near)]
    return Cost(*costs[0], *costs[1])


def _cost(lists: tuple[list[int], ...], timer: int) -> tuple[float, float]:
    whole, inner, bare, alone = lists
    if not inner:
        return 0.0, 0.0
    return max(_middle(inner) - (_middle(alone) - timer), 0.0), max(_middle(whole) - _middle(bare), 0.0)


def _empty() -> int:
    """What the timer shows around nothing."""
    began = perf_counter_ns()
    return perf_counter_ns() - began


def _middle(values: list[int]) -> float:
    ordered = sorted(values)
    return float(ordered[len(ordered) // 2])
