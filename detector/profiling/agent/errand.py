"""Something that a thread of the program must do itself, between two operations of its own.

The profiler writes the end of each operation into memory that it frees when it stops. An operation that is under way in
another thread at that moment (a read that waits for the device, for one) then writes into freed memory: on an H200 a
server with an engine thread was brought down by "double free or corruption" within seconds, torch 2.11. So a slice is
started and stopped by the very thread that it records, at a safe point: where our own callback runs in it, which is
never inside an operation.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import Any, Callable

from awp_lint.detector.profiling.agent.life import Life


class Errand:
    """One call to be made in one thread (any thread where ``thread`` is None) once ``due()`` holds.

    ``after``: at a unit's tick and at a mark's end, behind the record of it; else before it. With ``codes``, records of
    marks, it is called at the first of them too, whether due or not. ``at_tick``: only where a unit begins.
    """

    def __init__(
        self,
        do: Callable[[], None],
        thread: Life | None = None,
        after: bool = False,
        due: Callable[[], bool] = lambda: True,
        codes: frozenset[int] = frozenset(),
        at_tick: bool = False,
    ) -> None:
        self.do = do
        self.thread = thread
        self.after = after
        self.due = due
        self.codes = codes
        self.at_tick = at_tick
        self.met: frozenset[int] = frozenset()  # those of ``codes`` that it was called at
        self.fault: Any = None
        self._once = allocate_lock()
        self._done = allocate_lock()
        self._done.acquire()

    def suits(self, thread: Life, codes: tuple[int, ...] = (), ticking: bool = False) -> bool:
        """Whether this thread, with these records, is to run it, now; True is given to one thread only."""
        if (self.thread is not None and self.thread is not thread) or (self.at_tick and not ticking):
            return False
        met = self.codes.intersection(codes)
        if not (met or self.due()) or not self._once.acquire(False):
            return False
        self.met = met
        return True

    def run(self) -> None:
        """Make the call; what it raises is kept for the one who waits."""
        try:
            self.do()
        except BaseException as fault:
            self.fault = fault
        finally:
            self._done.release()

    def wait(self, seconds: float) -> bool:
        """Wait for the call to have been made. Raises what it raised."""
        if not self._done.acquire(timeout=max(seconds, 0.0)):
            return False
        self._done.release()
        if self.fault is not None:
            raise self.fault
        return True

    def cancel(self) -> bool:
        """Take it back; False where a thread already runs it."""
        return self._once.acquire(False)
