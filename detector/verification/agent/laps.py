"""Times per unit of a process that runs one version from its start to its end."""

from __future__ import annotations

from _thread import get_ident
from collections.abc import Mapping
from time import perf_counter_ns

from awp_lint.detector.verification.agent.stolen import waited_ns

_MOST = 20_000


class Laps:
    """Fed with every tick; ``kinds`` is each unit mark's unit. A unit that a request begins in is left out."""

    def __init__(self, kinds: Mapping[int, str]) -> None:
        self.kinds = kinds
        self.times: dict[int, list[int]] = {}
        self._last: dict[tuple[int, int], int] = {}
        self._requests = 0
        self._seen: dict[int, int] = {}

    def tick(self, mark: int) -> None:
        """A unit of this mark begins in the calling thread."""
        now = perf_counter_ns() - waited_ns()
        if self.kinds.get(mark) == "request":
            self._requests += 1
        key = (get_ident(), mark)
        last = self._last.get(key)
        times = self.times.setdefault(mark, [])
        began = self._requests
        if last is not None and len(times) < _MOST and (self._seen.get(mark) == began or self._own(mark)):
            times.append(now - last)
        self._seen[mark] = began
        self._last[key] = perf_counter_ns() - waited_ns()

    def _own(self, mark: int) -> bool:
        return self.kinds.get(mark) == "request"

    def longest(self) -> list[int]:
        """Of the mark that ticked most, steps before requests."""
        steps = {mark: times for mark, times in self.times.items() if not self._own(mark) and times}
        return max((steps or self.times).values(), key=len, default=[])
