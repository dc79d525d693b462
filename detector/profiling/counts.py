"""What a unit does, counted: figures that do not depend on how fast the machine is today.

On a CPU the operations of a unit stand for its device work ("host-proxy"). Reads of a tensor's value are left out of
them: there every tensor is a host tensor, and to read one costs nothing that a device would wait for.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np

from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.session import ProcessSession, WindowKind
from awp_lint.detector.profiling.timeline import Cat, Trace

_READS = ("aten::item", "aten::_local_scalar_dense", "aten::is_nonzero")
_VALUES = 64  # distinct numbers of operations that are kept


def counts(process: ProcessSession, kind: str, load: Callable[[str], Trace]) -> dict[str, Any]:
    """Of the traced units of a process: ``units``, ``ops`` as [operations, units] pairs, ``copies`` a unit.

    ``scope`` is "device" where device work was seen. A slice that cannot be read counts for nothing.
    """
    seen: Counter[int] = Counter()
    copies = 0
    scope = "host-proxy"
    for window in process.windows:
        if window.kind is not WindowKind.TRACE or window.trace is None or kind == "run":
            continue
        spans = units.spans(window, False)
        if not spans.start.size:
            continue
        try:
            trace = load(window.trace)
        except (OSError, ValueError):
            continue
        silent = [number for number, name in enumerate(trace.names) if name in _READS]
        ops = (trace.category == Cat.CPU_OP) & ~np.isin(trace.name, silent)
        for name, rows in (("ops", ops), ("copies", trace.category == Cat.MEMCPY)):
            place = spans.index(trace.start[rows])
            each = np.bincount(place[place >= 0], minlength=spans.start.size)
            if name == "ops":
                seen.update(each.tolist())
            else:
                copies += int(each.sum())
        if trace.gpu.size:
            scope = "device"
    total = sum(seen.values())
    return {
        "scope": scope,
        "units": total,
        "ops": sorted([value, number] for value, number in seen.most_common(_VALUES)),
        "copies": copies / total if total and scope == "device" else None,
    }
