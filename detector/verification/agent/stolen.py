"""For how long a thread waited for a core: no property of the code that it runs, and most of a shared host's noise.

Linux counts it for each thread. Elsewhere, and where it is not counted, it is 0.
"""

from __future__ import annotations

import os
from _thread import _local


class _Held:
    """A thread's file, closed with the thread."""

    __slots__ = ("handle",)

    def __init__(self) -> None:
        try:
            self.handle = os.open("/proc/thread-self/schedstat", os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        except OSError:
            self.handle = -1

    def __del__(self) -> None:
        if self.handle >= 0:
            os.close(self.handle)


_here = _local()


def waited_ns() -> int:
    """Of the calling thread, since it began; some microseconds a call."""
    try:
        held = _here.held
    except AttributeError:
        held = _here.held = _Held()
    if held.handle < 0:
        return 0
    try:
        return int(os.pread(held.handle, 96, 0).split()[1])
    except (OSError, ValueError, IndexError):
        return 0
