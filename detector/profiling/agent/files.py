"""What the agent leaves on disk: one folder per process, named ``p<pid>.<nanoseconds>``, in the session's folder.

``born``          at start: pid, parent's pid, Python version, then the command line, separated by NUL
``process.json``  state so far, replaced as a whole at every change (see :class:`Record`)
``marks.ring``    open and close events of marks, ``ticks.ring`` the starts of units (:mod:`ring`)
``reached.bin``   the first execution of each mark
``trace-N.json``  one slice of torch.profiler each
``hot.txt``       files whose code runs in a unit, one a line, where dependencies are to be looked at (:mod:`late`)
``census.json``   statements that wait for the device (:mod:`census`)
``ended``         there when the process came to its own end

In the folder of a run that was asked for while the program ran: ``answered``, there as soon as a process heard of it.
"""

from __future__ import annotations

import os
import sys
from time import time_ns
from typing import Any


def command_line() -> list[str]:
    """This process's command line, also before ``sys.argv`` is there."""
    line = getattr(sys, "orig_argv", None)
    if line:
        return list(line)
    try:
        with open("/proc/self/cmdline", "rb") as file:
            return [os.fsdecode(part) for part in file.read().split(b"\0")[:-1]]
    except OSError:
        return list(getattr(sys, "argv", []))


def script() -> str | None:
    """The script on the interpreter's command line, if it runs one."""
    line = command_line()[1:]
    while line:
        word = line.pop(0)
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            line[:1] = []
        elif word == "-" or not word.startswith("-"):
            return word if word != "-" and os.path.isfile(word) else None
        elif not word.startswith("--") and any(letter in word for letter in "cm"):
            return None
    return None


class Record:
    """This process's folder and its ``process.json``. Every method is safe to call from anywhere: nothing is raised."""

    def __init__(self, session: str) -> None:
        self.session = session
        self.folder = ""
        self.errors: list[str] = []
        self.stalls: list[list[Any]] = []
        self.windows: list[dict[str, Any]] = []
        self.facts: dict[str, Any] = {}
        self.pid = 0

    def born(self) -> None:
        """Make the folder."""
        self.pid = os.getpid()
        self.folder = os.path.join(self.session, "p%d.%d" % (self.pid, time_ns()))
        os.mkdir(self.folder, 0o700)
        version = "%d.%d.%d" % sys.version_info[:3]
        parts = [str(self.pid), str(os.getppid()), version, *command_line()]
        with open(os.path.join(self.folder, "born"), "wb") as file:
            file.write(b"\0".join(os.fsencode(part) for part in parts))

    def path(self, name: str) -> str:
        """A file in this process's folder."""
        return os.path.join(self.folder, name)

    def hot(self, names: list[str]) -> None:
        """Write the list of files whose code runs, so that those outside the scan can be scanned too."""
        temporary = self.path("hot.tmp")
        with open(temporary, "w", encoding="utf-8", errors="surrogateescape") as file:
            file.write("\n".join(names))
        os.replace(temporary, self.path("hot.txt"))

    def ended(self) -> None:
        """The process came to its own end."""
        with open(self.path("ended"), "w"):
            pass

    def error(self, what: str, fault: BaseException | None = None) -> None:
        """Note a fault of ours; the same one only once, and no more than 50."""
        text = what if fault is None else f"{what}: {type(fault).__name__}: {fault}"
        if text not in self.errors and len(self.errors) < 50:
            self.errors.append(text)

    def stall(self, what: str, nanoseconds: int) -> None:
        """Note for how long the program was held up."""
        self.stalls.append([what, round(nanoseconds / 1e6, 3)])

    def save(self, **facts: Any) -> None:
        """Write ``process.json`` anew."""
        self.facts.update(facts)
        if not self.folder:
            return
        try:
            import json

            text = json.dumps(
                dict(self.facts, windows=self.windows, stalls=self.stalls, errors=self.errors, saved_ns=time_ns())
            )
            temporary = self.path("process.tmp")
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(text)
            os.replace(temporary, self.path("process.json"))
        except Exception as fault:
            self.error("process.json could not be written", fault)
