"""One name for a thread in the records of marks and in a trace.

Records have native ids. Kineto does too for threads whose operations it recorded; the others it numbers by the low half
of their pthread, their identity in Python, as a signed number without its sign. Identities go to the next thread as
soon as one ends, so several threads of a slice may share a number there: in the records they then become one thread,
which is right as their lives do not overlap.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from awp_lint.detector.profiling.session import MarkRecords
from awp_lint.detector.profiling.timeline import Trace


def name_threads(trace: Trace, records: MarkRecords, idents: Mapping[int, int]) -> MarkRecords:
    """Put native ids into the trace (in place). Returns the records in which threads of one number are one."""
    present = set(np.unique(trace.thread).tolist())
    owners: dict[int, int] = {}  # number in the trace → the native id it becomes
    alias: dict[int, int] = {}
    for native, ident in idents.items():
        low = ident & 0xFFFFFFFF
        number = next((n for n in (low, min(low, 2**32 - low)) if n in present), None)
        if number is None or native in present:
            continue
        alias[native] = owners.setdefault(number, native)
    for number, native in owners.items():
        trace.thread[trace.thread == number] = native
    if all(native == name for native, name in alias.items()):
        return records
    return replace(records, thread=[alias.get(thread, thread) for thread in records.thread])
