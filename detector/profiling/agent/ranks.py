"""One schedule for all ranks of a job on this machine: windows are stretches of steps, the same on every rank.

Ranks wait for each other in every step, so that one which is traced slows all of them, and a window that others do not
have would show them slower than they are. The first local rank leads: once every rank has come to a round it writes
down which steps each window of it holds, far enough ahead, in the session's folder; all follow, itself included.
"""

from __future__ import annotations

import json
import math
import os
from time import perf_counter
from typing import Any, Callable, NamedTuple

from awp_lint.detector.profiling.agent.pace import UNITS, Pace

_PATIENCE = 10.0  # s for ranks to come to a round; then it begins without them
_ANSWER = 60.0  # s for the leader to write a round down
_LEAD = 0.5  # s from the writing of a round to its first window
_APART, _EXPORT = 0.05, 0.5  # s between windows, and behind a trace
_MOST = 2_000  # steps of a window


class Stretch(NamedTuple):
    """A window: so many ``steps`` from number ``first`` on."""

    kind: str
    first: int
    steps: int


class Ranks:
    """This process's part. ``wait`` is the schedule's: it raises where the run ends."""

    def __init__(self, folder: str, pace: Pace, wait: Callable[[float], None], local: int, size: int) -> None:
        self.folder = folder
        self.pace = pace
        self.wait = wait
        self.local = local
        self.size = size

    def round(self, number: int, seconds: float, slice_steps: int, over: Callable[[], bool]) -> list[Stretch] | None:
        """The windows of a round, each of about ``seconds``; [] where there is none any more, None where each rank is
        to go by itself: it has no steps, or nobody leads."""
        self._touch("ready-%d-%d" % (number, self.local))
        name = os.path.join(self.folder, "round-%d.json" % number)
        if self.local == 0:
            self._write(name, self._lead(number, seconds, slice_steps, over))
        end = perf_counter() + _ANSWER
        while not os.path.exists(name):
            if perf_counter() > end:
                return None
            self.wait(0.02)
        with open(name, encoding="utf-8") as file:
            rows = json.load(file)
        return None if rows is None else [Stretch(*row) for row in rows]

    def _lead(self, number: int, seconds: float, slice_steps: int, over: Callable[[], bool]) -> list[Stretch] | None:
        end = perf_counter() + _PATIENCE
        while perf_counter() < end and not self._all_ready(number):
            self.wait(0.02)
        if over():
            return []
        step = self._step_seconds()
        return None if step is None else stretches(number, self.pace.units(), step, seconds, slice_steps)

    def _all_ready(self, number: int) -> bool:
        return all(
            os.path.exists(os.path.join(self.folder, "ready-%d-%d" % (number, local))) for local in range(self.size)
        )

    def _step_seconds(self) -> float | None:
        """What a step takes now; None where none is seen."""
        if not self.pace.counts()[0]:
            return None
        first, began = self.pace.units(), perf_counter()
        while self.pace.units() < first + UNITS or perf_counter() < began + 0.1:
            if perf_counter() > began + 5.0:
                break
            self.wait(0.005)
        done = self.pace.units() - first
        return (perf_counter() - began) / done if done else None

    def _touch(self, name: str) -> None:
        with open(os.path.join(self.folder, name), "w"):
            pass

    def _write(self, name: str, rows: list[Stretch] | None) -> None:
        with open(name + ".tmp", "w", encoding="utf-8") as file:
            json.dump(rows, file)
        os.replace(name + ".tmp", name)


def stretches(number: int, now: int, step_s: float, seconds: float, slice_steps: int) -> list[Stretch]:
    """The windows of round ``number`` when ``now`` steps have begun and one takes ``step_s``."""

    def steps(length: float, least: int) -> int:
        return min(max(math.ceil(length / step_s), least), _MOST)

    length = steps(seconds, UNITS)
    kinds = [("baseline", length), ("marks", length), *[("trace", slice_steps)] * (1 if number else 2)]
    at = now + steps(_LEAD, 4)
    rows = []
    for kind, count in [*kinds, ("baseline", length)]:
        rows.append(Stretch(kind, at, count))
        at += count + 1 + steps(_EXPORT if kind == "trace" else _APART, 2)
    return rows


def of_this_process(folder: str, pace: Pace, wait: Callable[[float], None]) -> Ranks | None:
    """Where the process is one of several ranks on this machine, as torchrun tells it; else None."""
    values: list[Any] = [os.environ.get(name, "") for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE")]
    if not all(value.isdigit() for value in values) or int(values[2]) < 2:
        return None
    return Ranks(folder, pace, wait, int(values[1]), int(values[2]))
