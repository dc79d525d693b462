"""Records in memory-mapped files: they outlive SIGKILL, ``os._exit`` and the out-of-memory killer.

A ring holds 16-byte records ``(time_ns: u64, thread: u32, code: u32)``, native byte order, oldest overwritten first. A
slot never written is all zeros. The reader puts them in order by time. ``code`` is ``mark << 1 | opens``.
"""

from __future__ import annotations

import errno
import itertools
import mmap
import os
import struct
from _thread import _local, get_ident, get_native_id
from collections.abc import Callable
from time import time_ns

RECORD = struct.Struct("=QII")
SIZE = RECORD.size
CAPACITY = 1 << 20
_THREADS = 100_000  # whose identity is kept
_SPARE = 64 << 20  # bytes that must stay free on the disk
BREAK = 0xFFFFFFFF  # the code of a record that says: recording begins anew, what is open stays so


def mapped(path: str, size: int) -> mmap.mmap:
    """A new file of ``size`` zero bytes, mapped. Pages take no space until they are written.

    Never a file that is there: to cut one that is mapped short, or a disk without room for a page, would kill the
    program (SIGBUS). Raises OSError.
    """
    disk = os.statvfs(os.path.dirname(path) or ".")
    if disk.f_bavail * disk.f_frsize < _SPARE + size:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), 0o600)
    try:
        os.ftruncate(handle, size)
        return mmap.mmap(handle, size)
    finally:
        os.close(handle)


class Ring:
    """One ring file. ``write(now, codes)`` appends a record for each code, by the calling thread."""

    def __init__(self, path: str, capacity: int = CAPACITY) -> None:
        if capacity & (capacity - 1):
            raise ValueError("capacity must be a power of two")
        self.capacity = capacity
        self.memory = mapped(path, capacity * SIZE)
        self.times = memoryview(self.memory).cast("Q")  # a record's time at 2n ...
        self.halves = memoryview(self.memory).cast("I")  # ... its thread and code at 4n + 2 and 4n + 3
        self.counter = itertools.count()
        self.local = _local()
        self.idents: dict[int, int] = {}  # native id → identity of each thread that wrote
        self.write = self._writer()

    def thread(self) -> int:
        """The calling thread's native id, kept for the next time in ``local.id``."""
        self.local.id = number = get_native_id()
        if len(self.idents) < _THREADS:
            self.idents[number] = get_ident()
        return number

    def _writer(self) -> Callable[[int, tuple[int, ...]], None]:
        # A closure, not a method: this runs at every mark. ``next(counter)`` is atomic under the GIL, so that threads
        # need no lock; the native thread id is kept in a thread-local, which dies with its thread as the id does.
        memory, advance, mask = self.memory, self.counter.__next__, self.capacity - 1
        pack, local, number = RECORD.pack_into, self.local, self.thread

        def write(now: int, codes: tuple[int, ...]) -> None:
            try:
                thread = local.id
            except AttributeError:
                thread = number()
            for code in codes:
                pack(memory, (advance() & mask) << 4, now, thread, code)

        return write

    def since(self, first: int) -> list[int]:
        """The codes of the records from number ``first`` on, the latest ones where there are too many to keep."""
        last = self.written()
        first = max(first, last - self.capacity, 0)
        memory, mask = self.memory, self.capacity - 1
        return [RECORD.unpack_from(memory, (n & mask) * SIZE)[2] for n in range(first, last)]

    def records(self, first: int) -> list[tuple[int, int]]:
        """The ``(time_ns, code)`` of the records from number ``first`` on that this thread wrote."""
        own, memory, mask = getattr(self.local, "id", None), self.memory, self.capacity - 1
        rows = [RECORD.unpack_from(memory, (n & mask) * SIZE) for n in range(first, self.written())]
        return [(time, code) for time, thread, code in rows if thread == own]

    def written(self) -> int:
        """How many records were written so far, overwritten ones included."""
        # itertools.count shows its next value in its reduced form without consuming it.
        return int(repr(self.counter)[6:-1])


class Reached:
    """The first execution of each mark: one u64 of nanoseconds per mark, 0 while it has not run."""

    def __init__(self, path: str, marks: int) -> None:
        self.memory = mapped(path, max(8, 8 * marks))

    def set(self, mark: int) -> bool:
        """Note that ``mark`` ran. True when it is the first time."""
        at = 8 * mark
        if self.memory[at : at + 8] != b"\0\0\0\0\0\0\0\0":
            return False
        self.memory[at : at + 8] = struct.pack("=Q", time_ns())
        return True

    def count(self) -> int:
        """How many marks have run."""
        raw = self.memory[:]
        return sum(1 for (value,) in struct.iter_unpack("=Q", raw) if value)
