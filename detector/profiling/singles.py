"""Executions by themselves: what a handler does once a request, beside the loop whose iterations are the units.

Where no slice shows a statement inside a unit, each execution is priced as a unit of its own, a "call", and set against
the time from one call to the next.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from awp_lint.detector.profiling.join import Executions
from awp_lint.detector.profiling.timeline import Bools, Floats

MOST = 2_000  # executions of one mark that are kept


@dataclass(slots=True)
class Singles:
    """By mark: figures of executions in trace windows and times (ms) of those in marks-only windows, one value each.

    ``wall_ms`` is how long the marks-only windows were open together: what they hold says how often a call comes.
    """

    figures: dict[int, dict[str, Floats]] = field(default_factory=dict)
    host_ms: dict[int, Floats] = field(default_factory=dict)
    wall_ms: float = 0.0

    def add_traced(self, found: Executions, known: Bools, values: Mapping[str, Floats]) -> None:
        """A trace window's executions. ``known``: whether the trace knows anything of their thread."""
        rows = np.flatnonzero(known & found.outermost)
        for mark in np.unique(found.mark[rows]).tolist():
            mine = rows[found.mark[rows] == mark][:MOST]
            row = self.figures.setdefault(mark, {})
            for name, series in values.items():
                row[name] = np.append(row.get(name, np.empty(0)), series[mine])

    def add_marked(self, found: Executions, took: Floats, window_ms: float) -> None:
        """A marks-only window's, and what each took in ms."""
        self.wall_ms += window_ms
        rows = np.flatnonzero(found.outermost)
        for mark in np.unique(found.mark[rows]).tolist():
            mine = rows[found.mark[rows] == mark][:MOST]
            self.host_ms[mark] = np.append(self.host_ms.get(mark, np.empty(0)), took[mine])

    def between_ms(self, mark: int) -> float | None:
        """Mean time from one call to the next, over the marks-only windows; None where none fell into them."""
        calls = self.host_ms.get(mark, np.empty(0)).size
        return self.wall_ms / calls if calls else None
