"""Counting units: what paces the windows."""

from __future__ import annotations

from awp_lint.detector.profiling.agent.state import State

UNITS = 4  # begun in a window: three whole ones


class Pace:
    """Steps and requests begun so far, by the ticks of the plan's unit marks."""

    def __init__(self, state: State) -> None:
        self.state = state
        self._kinds: dict[int, str] | None = None

    def kinds(self) -> dict[int, str]:
        """Each unit mark's unit. Asked at every tick of a slice, so kept."""
        if self._kinds is None:
            marks = [mark for found in self.state.plan.by_path.values() for mark in found]
            self._kinds = {mark.number: mark.unit for mark in marks if mark.unit}
        return self._kinds

    def renew(self) -> None:
        """The plan has grown."""
        self._kinds = None

    def counts(self) -> tuple[int, int]:
        """Steps and requests; of several loops that count the same, the one that ticked most."""
        steps = requests = 0
        kinds = self.kinds()
        for mark, ticks in self.state.ticked().items():
            if kinds.get(mark) == "request":
                requests = max(requests, ticks)
            else:
                steps = max(steps, ticks)
        return steps, requests

    def units(self) -> int:
        """Units that pace the windows: steps where there are any, else requests."""
        steps, requests = self.counts()
        return steps or requests

    def ticking(self) -> bool:
        """Whether any unit began yet."""
        return any(self.counts())

    def lacking(self, first: tuple[int, int], requests: bool) -> str:
        """What a window that began at ``first`` counts still lacks, in words; empty when nothing."""
        steps, whole = (now - before for now, before in zip(self.counts(), first))
        if not self.ticking():
            return ""
        if (steps or whole) < UNITS:
            return "fewer than %d units began in it" % UNITS
        if requests and self.counts()[1] and whole < UNITS:
            return "fewer than three whole requests"
        return ""
