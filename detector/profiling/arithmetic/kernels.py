"""Single kernels on the roofline, by the shapes of the operators that launched them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from awp_lint.detector.profiling.arithmetic.slices import Operator
from awp_lint.detector.profiling.picture.kinds import label, short_name
from awp_lint.detector.profiling.timeline import Bools, Ints, Trace

ROWS = 40
_MOST = 0.8  # of the computing time of an operator's kernels must be the one's that its arithmetic is laid to


@dataclass(slots=True)
class _Sum:
    runs: int = 0
    ns: int = 0
    flops: int = 0
    bytes: int = 0
    rates: Counter[str] = field(default_factory=Counter)


def rows(
    trace: Trace, ops: Sequence[Operator], operator: Ints, computes: Bools, rate_of: Callable[[Operator], str]
) -> list[dict[str, Any]]:
    """Kernels by time, each with what its operators compute and the least that they move, over the whole slice.

    ``operator`` and ``computes`` say of each row of ``trace.gpu`` which operator launched it, and whether it is of a
    kind that computes. An operator that computes in several kernels (attention as two products) is laid to none.
    """
    took = (trace.end - trace.start)[trace.gpu]
    chosen = np.flatnonzero((operator >= 0) & computes)
    by_operator: dict[int, list[int]] = {}
    for row in chosen.tolist():
        by_operator.setdefault(int(operator[row]), []).append(row)
    found: dict[str, _Sum] = {}
    for number, own in by_operator.items():
        counted = ops[number].count
        longest = max(own, key=lambda row: int(took[row]))
        if counted is None or took[longest] < _MOST * took[own].sum():
            continue
        name = trace.names[int(trace.name[trace.gpu[longest]])]
        one = found.setdefault(name, _Sum())
        one.runs += 1
        one.ns += int(took[longest])
        one.flops += counted.flops
        one.bytes += counted.bytes
        one.rates[rate_of(ops[number])] += counted.flops
    ordered = sorted(found.items(), key=lambda item: (-item[1].ns, item[0]))[:ROWS]
    return [
        {
            "name": short_name(name), "label": label(name), "runs": one.runs, "mean_us": one.ns / one.runs / 1e3,
            "intensity": one.flops / one.bytes, "tflops": one.flops / one.ns / 1e3,
            "dtype": one.rates.most_common(1)[0][0],
        }
        for name, one in ordered
        if one.ns and one.bytes
    ]  # fmt: skip


def bounded(
    table: Sequence[Mapping[str, Any]], kernels: Sequence[Mapping[str, Any]], ridge: Mapping[str, float]
) -> list[dict[str, Any]]:
    """The kernel table with the bound of those that only their shapes tell. ``ridge``: FLOP a byte, by dtype."""
    known = {kernel["name"]: kernel for kernel in kernels if kernel["dtype"] in ridge}
    shown = []
    for row in table:
        kernel = known.get(row["name"])
        if kernel is None or row["bound"] != "unknown":
            shown.append(dict(row))
            continue
        limit = ridge[kernel["dtype"]]
        why = (
            f"{kernel['intensity']:.0f} FLOP/byte at most by its shapes, ridge point {limit:.0f} ({kernel['dtype']}); "
            f"{kernel['tflops']:.0f} TFLOP/s"
        )
        shown.append({**row, "bound": "compute" if kernel["intensity"] > limit else "memory", "why": why})
    return shown
