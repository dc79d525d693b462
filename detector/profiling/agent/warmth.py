"""Whether a program is warm: what it does a unit has stopped changing. Times are never asked, since hosts drift."""

from __future__ import annotations

import sys
from typing import Any, Callable

from awp_lint.detector.profiling.agent.tracer import torch_module, uses_cuda

_QUIET = 0.1  # s without change, where units are counted
_QUIET_ALONE = 0.5  # s, where they are not
_UNITS = 3  # without change; twice as many where the device's allocations are counted
_TOLERANCE = 0.1  # between allocations a unit of neighbouring stretches
_VARYING = 30  # units after which work that goes on varying is taken as it is


class Warmth:
    """Fed with samples by the schedule's thread. ``varying``: the work a unit was not constant, in the end."""

    def __init__(self, counted: Callable[[], int | None] | None = None) -> None:
        self.varying = False
        self._counted = counted or allocations
        self._work: object = None
        self._since = 0.0
        self._ticks = 0
        self._marks: list[tuple[int, int]] = []  # (units, allocations), a stretch of _UNITS apart

    def restart(self, now: float, ticks: int) -> None:
        """Something held the program up, or its work changed: begin again."""
        self._since, self._ticks = now, ticks
        self._marks = []

    def settled(self, now: float, ticks: int, work: object, ticking: bool) -> bool:
        """Whether ``work`` has stood still for long enough, ``ticks`` units having begun in all."""
        if work != self._work:
            self._work = work
            self.restart(now, ticks)
        if not ticking:
            return now - self._since >= _QUIET_ALONE
        units = ticks - self._ticks
        return units >= _UNITS and now - self._since >= _QUIET and self._constant(ticks, units)

    def _constant(self, ticks: int, units: int) -> bool:
        count = self._counted()
        if count is None:
            return True
        if not self._marks or ticks >= self._marks[-1][0] + _UNITS:
            self._marks.append((ticks, count))
        if len(self._marks) < 3:
            return False
        (a, x), (b, y), (c, z) = self._marks[-3:]
        before, after = (y - x) / (b - a), (z - y) / (c - b)
        if abs(after - before) <= _TOLERANCE * max(before, after):
            return True
        self.varying = units >= _VARYING
        return self.varying


def work(reached: int) -> tuple[Any, ...]:
    """What stands still once a program is warm. Cheap, and touches no device."""
    return (len(sys.modules), reached, dynamo_frames(), _segments())


def dynamo_frames() -> int:
    """How many frames Dynamo has compiled."""
    utils = sys.modules.get("torch._dynamo.utils")
    counters = getattr(utils, "counters", None)
    try:
        return int(counters["frames"]["ok"]) if counters else 0
    except Exception:
        return 0


def _segments() -> int:
    """Bytes that the caching allocator holds, over all devices: growth means that sizes are still new."""
    torch = torch_module()
    if torch is None or not uses_cuda(torch):
        return 0
    try:
        return sum(int(torch.cuda.memory_reserved(n)) for n in range(torch.cuda.device_count()))
    except Exception:
        return 0


def allocations() -> int | None:
    """Blocks that the program has asked the caching allocator for: grows with the operations; None where unknown."""
    torch = torch_module()
    if torch is None or not uses_cuda(torch):
        return None
    try:
        stats = torch._C._cuda_memoryStats(torch.cuda.current_device())
        return int(stats["allocation"]["all"]["allocated"])
    except Exception:
        return None
