"""How a program that does not end is ended, and which of its processes gets which signal.

The command runs in our own process group, as it would in the shell's. Shells, ``torchrun``, reloaders and pre-forking
servers stand between it and the Python that works, so that:

* **SIGINT means Ctrl-C**: every process of the command that is in our process group gets it, as from a terminal. Where
  it did come from the terminal, the kernel has done so already and we send nothing, since a second one makes servers
  quit without cleaning up. Processes that the program put into sessions of their own (``torchrun``'s workers) are their
  parent's to stop, as at a terminal.
* **SIGTERM** comes 10 s later to the same processes, those that are left: a shell would die of it at once and leave the
  server behind if only the shell got it.
* **SIGKILL** comes 10 s after that, to every descendant in whatever session, since nobody is left to stop those.

A signal that somebody sends to *us* is passed on to the process that the command started and to no other: that is the
one they would have signalled. It is over when the command's process and its descendants in our group have ended;
daemons in sessions of their own that outlive an orderly end are left alone, as they would be without us.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Callable

RUNGS = ((signal.SIGINT, 10.0), (signal.SIGTERM, 10.0), (signal.SIGKILL, 10.0))


def from_terminal() -> bool:
    """Whether a SIGINT that we got was typed: then it went to our whole process group.

    There is no way to see who sent a signal from a Python handler; that we are in the foreground of a terminal is the
    sign. Somebody who signals only us then waits for the next rung.
    """
    try:
        terminal = os.open("/dev/tty", os.O_RDONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        return os.tcgetpgrp(terminal) == os.getpgrp()
    except OSError:
        return False
    finally:
        os.close(terminal)


class Tree:
    """The command's process and all descendants seen so far, known by pid and start time."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        import psutil

        self.process = process
        self._psutil = psutil
        self._seen: dict[int, psutil.Process] = {}
        self.look()

    def look(self) -> None:
        """Take in descendants that are new. Once a parent has died its children can no longer be found by it."""
        psutil = self._psutil
        roots = list(self._seen.values())
        with contextlib.suppress(psutil.Error):
            roots.append(psutil.Process(self.process.pid))
        for root in roots:
            with contextlib.suppress(psutil.Error):
                for child in root.children(recursive=True):
                    if self._seen.get(child.pid) != child:
                        self._seen[child.pid] = child

    def descendants(self, only_group: bool) -> list[int]:
        """Pids of the descendants that are still running; with ``only_group`` those in our process group."""
        psutil = self._psutil
        alive = []
        for pid, member in self._seen.items():
            with contextlib.suppress(psutil.Error, ProcessLookupError):
                running = member.is_running() and member.status() != psutil.STATUS_ZOMBIE
                if running and (not only_group or os.getpgid(pid) == os.getpgrp()):
                    alive.append(pid)
        return alive

    def send(self, number: int, only_group: bool) -> None:
        """Signal the command's process and its descendants, parents first."""
        self.look()
        if self.process.poll() is None:
            self.process.send_signal(number)
        for pid in self.descendants(only_group):
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(pid, number)

    def gone(self) -> bool:
        """Whether the command's process and its descendants in our group have ended."""
        return self.process.poll() is not None and not self.descendants(only_group=True)


def stop(
    process: subprocess.Popen[bytes],
    already_interrupted: bool,
    tick: Callable[[], None],
    rungs: tuple[tuple[signal.Signals, float], ...] = RUNGS,
) -> str:
    """End the command, rung by rung; the name of the signal that did, or "" when it would not end.

    ``already_interrupted``: the first rung's signal has been delivered. ``tick`` is called every few hundredths of a
    second. The process itself is reaped by ``process.poll``.
    """
    tree = Tree(process)
    for number, seconds in rungs:
        if number != signal.SIGINT or not already_interrupted:
            tree.send(number, only_group=number != signal.SIGKILL)
        end = time.monotonic() + seconds
        looked = 0.0
        while (now := time.monotonic()) < end:
            if tree.gone():
                return number.name
            tick()
            if now > looked + 0.25:  # a look reads all of /proc
                tree.look()
                looked = now
            time.sleep(0.02)
    return ""
