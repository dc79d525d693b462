"""Savings of findings by replay: fitted once a process, asked once a finding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from awp_lint.detector.finding import Event, RootCause
from awp_lint.detector.profiling import replay
from awp_lint.detector.profiling.edits import Places, edits_for, merge
from awp_lint.detector.profiling.join import Executions
from awp_lint.detector.profiling.program import Program
from awp_lint.detector.profiling.timeline import Busy, Ints

MAX_SLICES = 8
SLICE_STEPS = 2_500  # of one slice
MAX_STEPS = 20_000  # over all slices: a replay is a walk over every step


@dataclass(frozen=True, slots=True)
class Slice:
    """A program with the executions that its edges name; ``owner`` is the innermost execution of every call."""

    program: Program
    executed: Executions
    owner: Ints

    def mark_of(self) -> dict[int, int]:
        """The mark of every execution row."""
        return dict(enumerate(self.executed.mark.tolist()))

    def places(self, mark: int) -> Places:
        """Where the executions of a mark lie."""
        executed, program = self.executed, self.program
        rows = {row for _, row, _ in program.edges if executed.mark[row] == mark and executed.outermost[row]}
        own: dict[int, list[int]] = {row: [] for row in rows}
        inside: dict[int, list[int]] = {row: [] for row in rows}
        parent = executed.parent
        for step, call in enumerate(program.call.tolist()):
            if call < 0 or (row := int(self.owner[call])) < 0:
                continue
            mine = executed.mark[row] == mark
            while row >= 0 and row not in rows:
                row = int(parent[row])
            if row >= 0:
                inside[row].append(step)
                if mine:
                    own[row].append(step)
        chosen = np.array(sorted(rows), np.int64)
        union = Busy(executed.open[chosen], executed.close[chosen])
        lead = np.array(program.lead, np.int64)
        covered = union.within(program.begin - lead, program.begin)
        leads = {int(s): float(covered[s] / lead[s]) for s in np.flatnonzero((covered > 0) & (lead > 0))}
        ordered = tuple(sorted(rows))
        return Places(
            tuple(tuple(own[row]) for row in ordered), tuple(tuple(inside[row]) for row in ordered), leads, ordered
        )

    def statements(self, calls_ms: Mapping[int, float]) -> list[replay.Statement]:
        """The marks whose executions hold no other's calls, with what is known of them."""
        found = []
        for mark, measured in calls_ms.items():
            places = self.places(mark)
            if places.rows and measured > 0 and places.own == places.inside:
                steps = tuple(step for steps in places.inside for step in steps)
                found.append(replay.Statement(places.rows, steps, places.leads, measured))
        return found


@dataclass(slots=True)
class WhatIf:
    """One process's replay. ``model`` is None where there were too few slices to fit and test it."""

    slices: list[Slice]
    model: replay.Model | None

    def refusal(self, mark: int, measured_ms: float | None) -> str | None:
        """Why no saving of this mark can be replayed; ``measured_ms`` is one execution's marks-only time."""
        if self.model is None:
            return "too few whole slices for a replay"
        if not self.model.passed:
            return self.model.errors[0]
        if measured_ms is None:
            return "no marks-only time to hold the replay against"
        if not self.model.reproduces(mark, measured_ms):
            replayed = self.model.marks_ms.get(mark)
            if replayed is None:
                return "the statement does not lie in the replayed slices"
            return f"the replay gives the statement {replayed:.3f} ms where {measured_ms:.3f} ms were measured"
        return None

    def saving(self, mark: int, event: Event, cause: RootCause) -> replay.Saving:
        """What a unit gains without the mark's event. Ask :meth:`refusal` first."""
        assert self.model is not None

        def edits(number: int, program: Program) -> tuple[replay.Edit, replay.Edit, replay.Edit]:
            return edits_for(program, event, cause, self.slices[number].places(mark))

        return replay.saving(self.model, edits)

    def rate(self, mark: int) -> float:
        """Executions a unit in the replayed slices."""
        opened = sum(
            opens and one.executed.mark[row] == mark for one in self.slices for _, row, opens in one.program.edges
        )
        return float(opened) / sum(one.program.units for one in self.slices)

    def joint(self, wanted: Sequence[tuple[int, Event, RootCause]]) -> list[float]:
        """What a unit gains, ms, without the first mark, the first two, and so on: savings do not add up."""
        assert self.model is not None
        gains = np.zeros(len(wanted))
        for one, hosts in zip(self.slices, self.model.hosts, strict=True):
            base = replay.run(one.program, hosts[0]).unit_ms
            edits = [edits_for(one.program, e, c, one.places(m))[1] for m, e, c in wanted]
            for count in range(1, len(edits) + 1):
                gains[count - 1] += base - replay.run(one.program, hosts[0], merge(edits[:count])).unit_ms
        return [float(gain) / len(self.slices) for gain in gains]


def whatif(
    slices: list[Slice], unit_ms: float, fastest_ms: float, gap_ratio: float | None, calls_ms: Mapping[int, float]
) -> WhatIf:
    """Fit the slices, as many as the walk allows. See :func:`replay.fit` for the times.

    ``calls_ms``: by mark, what one execution takes in marks-only windows, at the host's usual speed.
    """
    chosen: list[Slice] = []
    for one in slices[:MAX_SLICES]:
        if chosen and sum(len(s.program) for s in chosen) + len(one.program) > MAX_STEPS:
            break
        chosen.append(one)
    by_program = {id(s.program): s for s in chosen}
    model = replay.fit(
        [s.program for s in chosen], unit_ms, fastest_ms, gap_ratio,
        lambda p: by_program[id(p)].mark_of(), lambda p: by_program[id(p)].statements(calls_ms),
    )  # fmt: skip
    return WhatIf(chosen, model)
