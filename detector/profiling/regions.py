"""Marks of the very loop that counts the units: it is open all the time, so that every unit is one execution of it."""

from __future__ import annotations

import numpy as np

from awp_lint.detector.finding import MarkKind
from awp_lint.detector.profiling.session import MarkRecords, PlannedMark
from awp_lint.detector.profiling.units import Spans


def unit_marks(marks: tuple[PlannedMark, ...], kind: str, pacing: int | None = None) -> frozenset[int]:
    """Numbers of the findings' marks that lie where the units of this kind are counted.

    ``pacing`` is the mark that gave them: another loop of the same kind keeps its own executions.
    """

    def place(planned: PlannedMark) -> tuple[object, ...]:
        mark = planned.mark
        return (planned.path, mark.kind, mark.line, mark.end_line)

    counted = {place(p) for p in marks if p.unit == kind and (pacing is None or p.index == pacing)}
    regions = (MarkKind.LOOP, MarkKind.FUNCTION)
    return frozenset(p.index for p in marks if p.unit is None and p.mark.kind in regions and place(p) in counted)


def with_units(records: MarkRecords, marks: frozenset[int], spans: Spans, thread: int) -> MarkRecords:
    """The records with every unit as an execution of each of the marks, in place of their own records.

    A loop's own opens and closes say nothing in a window that begins and ends inside it.
    """
    if not marks or not spans.start.size:
        return records
    kept = [row for row, mark in enumerate(records.mark) if mark not in marks]
    rows: list[
        tuple[int, int, int, int, int, bool]
    ] = [  # time, order at one time, order of writing, thread, mark, opens
        (records.time_ns[row], 1, row, records.thread[row], records.mark[row], records.opens[row]) for row in kept
    ]
    for number in sorted(marks):
        for start, end in zip(spans.start.tolist(), spans.end.tolist(), strict=True):
            rows.append((start, 0, len(rows), thread, number, True))  # a unit opens before what else opens then, …
            rows.append((end, -1, -len(rows), thread, number, False))  # … and the one before it has closed
    rows.sort(key=lambda row: row[:3])
    return MarkRecords(
        [row[0] for row in rows], [row[3] for row in rows], [row[4] for row in rows], [row[5] for row in rows],
        records.dropped,
    )  # fmt: skip


def main_thread(threads: np.ndarray, fallback: int) -> int:
    """The most frequent of the threads."""
    if not threads.size:
        return fallback
    numbers, counts = np.unique(threads, return_counts=True)
    return int(numbers[np.argmax(counts)])
