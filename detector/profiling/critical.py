"""The critical path of traced units: the chain of host work, launches and device work that the time goes along.

What is on it shortens the unit when it is made faster; what is beside it does not, however long it takes. The graph has
a node for each begin and end of a call and of a piece of device work, and an edge for whatever must lie between two of
them; the path is its longest. Times are the replay's: the profiler's own cost is taken off.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from awp_lint.detector.profiling.replay import EVENT_NS, NOTHING, Host, edited
from awp_lint.detector.profiling.whatif import Slice, WhatIf

HOST, LAUNCH, LATENCY, DEVICE, ANSWER = "host", "launch", "latency", "device", "answer"
KINDS = (HOST, LAUNCH, LATENCY, DEVICE, ANSWER)
MOST_STEPS = 4_000  # of all slices together


@dataclass(frozen=True, slots=True)
class Critical:
    """``ms`` by kind, a unit; they add up to the path."""

    ms: dict[str, float]

    @property
    def shares(self) -> dict[str, float]:
        """By kind, of the whole path; they add up to 1."""
        whole = sum(self.ms.values())
        return {kind: self.ms.get(kind, 0.0) / whole for kind in KINDS} if whole else {}


def critical(whatif: WhatIf) -> Critical | None:
    """Of a process's replayed slices; None without a fitted replay."""
    if whatif.model is None:
        return None
    found: list[tuple[Critical, int]] = []
    steps = 0
    for one, hosts in zip(whatif.slices, whatif.model.hosts, strict=True):
        if found and steps + len(one.program) > MOST_STEPS:
            break
        steps += len(one.program)
        found.append((path(one, hosts[0]), one.program.units))
    return _pooled(found) if found else None


def path(one: Slice, host: Host) -> Critical:
    """Of one slice; ms of the whole slice."""
    import networkx

    lead, busy, target, work = edited(one.program, host, NOTHING)
    graph: networkx.DiGraph[int] = networkx.DiGraph()

    def between(start: int, end: int, ns: float, kind: str) -> None:
        if not graph.has_edge(start, end) or graph[start][end]["weight"] < ns:
            graph.add_edge(start, end, weight=max(ns, 0.0), kind=kind)

    node = 0  # the end of the step before
    following = 1
    ends: list[int] = []  # of device work, in order of launch
    lanes: dict[int, int] = {}
    for before, own, back, items in zip(lead, busy, target, work, strict=True):
        begin, end = following, following + 1
        following += 2
        between(node, begin, before, HOST)
        between(begin, end, own, LAUNCH if items else HOST)
        for lane, took, latency, behind, other in items:
            start, finish = following, following + 1
            following += 2
            between(begin, start, latency, LATENCY)
            if lane in lanes:
                between(lanes[lane], start, behind, DEVICE)
            if 0 < other <= len(ends):
                between(ends[-other], start, EVENT_NS, DEVICE)
            between(start, finish, took, DEVICE)
            lanes[lane] = finish
            ends.append(finish)
        if 0 <= back < len(ends):
            between(ends[-1 - back], end, one.program.answer, ANSWER)
        node = end
    last = following
    for end in (node, *lanes.values()):
        between(end, last, 0.0, DEVICE)
    longest = networkx.dag_longest_path(graph, weight="weight")
    ms = dict.fromkeys(KINDS, 0.0)
    for start, end in itertools.pairwise(longest):
        edge = graph[start][end]
        ms[edge["kind"]] += edge["weight"] / 1e6
    return Critical(ms)


def _pooled(found: Sequence[tuple[Critical, int]]) -> Critical:
    units = sum(count for _, count in found)
    return Critical({kind: sum(one.ms[kind] for one, _ in found) / units for kind in KINDS})
