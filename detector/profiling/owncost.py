"""Takes what marks cost themselves off the times that they recorded (see the agent's ``selfcost``)."""

from __future__ import annotations

import numpy as np

from awp_lint.detector.profiling.agent.selfcost import Cost
from awp_lint.detector.profiling.join import Executions
from awp_lint.detector.profiling.timeline import Floats

# Between two reads of a loop over elements lies about a microsecond; a launch of torch alone takes longer than this.
_NEAR_NS = 3000
_NEVER = np.iinfo(np.int64).min // 2


def own_ms(found: Executions, own: Cost) -> Floats:
    """Each execution's time in ms without what recording it and those inside it cost; 0 for recursive ones."""
    near = np.zeros(found.open.size, np.bool_)  # recorded directly behind another record of the thread
    inside = np.zeros(found.open.size)
    for thread in np.unique(found.thread):
        rows = np.flatnonzero(found.thread == thread)  # in order of opening
        opened, closed = found.open[rows], np.sort(found.close[rows])
        last = np.concatenate([[_NEVER], closed])[np.searchsorted(closed, opened, side="right")]
        last[1:] = np.maximum(last[1:], opened[:-1])
        near[rows] = opened - last < _NEAR_NS
        whole = np.concatenate([[0.0], np.cumsum(np.where(near[rows], own.whole_near, own.whole))])
        until = np.searchsorted(opened, found.close[rows], side="left")
        inside[rows] = whole[until] - whole[np.minimum(np.arange(rows.size) + 1, until)]
    took = found.close - found.open - np.where(near, own.inner_near, own.inner) - inside
    return np.where(found.outermost, np.maximum(took, 0.0), 0.0) / 1e6
