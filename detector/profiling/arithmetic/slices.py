"""A slice with shapes: which of its operators compute how much, when, and in which device work."""

from __future__ import annotations

import bisect
import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from awp_lint.detector.profiling.arithmetic.operators import Count, Inputs, count, known, suspect
from awp_lint.detector.profiling.timeline import Ints, Links, Trace

_LONGEST = 500_000_000  # bytes of a slice that is read


@dataclass(frozen=True, slots=True)
class Operator:
    """One execution of an operator. Times in ns; ``count`` None where it surely computes and nothing tells how much."""

    name: str
    thread: int
    start: int
    end: int
    count: Count | None


def operators(path: str) -> list[Operator]:
    """The operators of a slice that count, in order of their start; of those within each other the outermost.

    Raises ``OSError`` and ``ValueError`` where the file cannot be read.
    """
    with open(path, "rb") as file:
        text = file.read(_LONGEST + 1)
    if len(text) > _LONGEST:
        raise ValueError(f"{path}: more than {_LONGEST // 10**6} MB")
    data = json.loads(text)
    events = data.get("traceEvents") if isinstance(data, dict) else None
    if not isinstance(events, list):
        raise ValueError(f"{path}: not a Kineto trace")
    base = int(data.get("baseTimeNanoseconds") or 0)
    return list(_outermost(sorted(_read(events, base), key=lambda op: (op.thread, op.start, -op.end))))


def _read(events: Iterable[Mapping[str, Any]], base: int) -> Iterator[Operator]:
    for event in events:
        name = str(event.get("name", ""))
        if event.get("cat") != "cpu_op" or not (known(name) or suspect(name)):
            continue
        args = event.get("args") or {}
        inputs = Inputs(args.get("Input Dims") or [], args.get("Input type") or [], args.get("Concrete Inputs") or [])
        start = base + round(float(event["ts"]) * 1000)
        end = start + round(float(event.get("dur", 0)) * 1000)
        yield Operator(name, int(event["tid"]), start, end, count(name, inputs))


def _outermost(ordered: Iterable[Operator]) -> Iterator[Operator]:
    """Without what lies in a counted operator; one that is not counted gives way to what it holds."""
    reach: tuple[int, int] = (-1, 0)  # thread, and the end of its counted operator
    waiting: list[Operator] = []  # not counted, and nothing counted seen in them so far
    for op in ordered:
        while waiting and (waiting[-1].thread != op.thread or waiting[-1].end <= op.start):
            yield waiting.pop()
        if op.thread == reach[0] and op.start < reach[1]:
            continue
        if op.count is None:
            waiting.append(op)
            continue
        waiting.clear()  # they hold it
        reach = (op.thread, op.end)
        yield op
    yield from waiting


def work_of(ops: list[Operator], trace: Trace, links: Links) -> Ints:
    """For every row of ``trace.gpu`` the number of the operator that launched it, or -1."""
    found = np.full(trace.gpu.size, -1, np.int64)
    by_thread: dict[int, list[int]] = {}
    for number in sorted(range(len(ops)), key=lambda place: ops[place].start):
        by_thread.setdefault(ops[number].thread, []).append(number)
    starts = {thread: [ops[number].start for number in numbers] for thread, numbers in by_thread.items()}
    for row, call in enumerate(links.call_of.tolist()):
        if call < 0:
            continue
        event = int(trace.calls[call])
        thread, begun = int(trace.thread[event]), int(trace.start[event])
        place = bisect.bisect_right(starts.get(thread, []), begun) - 1
        if place >= 0 and begun < ops[by_thread[thread][place]].end:
            found[row] = by_thread[thread][place]
    return found
