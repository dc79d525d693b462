"""The load of a profile run: a command of the user's or our own HTTP requests, from readiness to the stop.

A load command runs through the shell in a session of its own, so that Ctrl-C at the terminal reaches the program first
and the load only by us. It has no agent in it. What it prints goes to standard error: standard output is the program's.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from typing import Any, Protocol

from awp_lint.detector.profiling.httpload import HttpLoad, HttpLoadSpec


class Load(Protocol):
    """What the run drives. All methods are called from one thread and return at once, but for ``stop``."""

    def start(self) -> None: ...

    def ended(self) -> bool:
        """Whether it came to its own end, so that no more work follows."""

    def stop(self) -> None: ...

    def summary(self) -> dict[str, Any]:
        """The profile object's ``load``."""

    def note(self) -> str | None:
        """A line for the person where it went wrong."""


class CommandLoad:
    """``--load CMD``."""

    def __init__(self, command: str, env: Mapping[str, str] | None = None) -> None:
        self.command = command
        self.env = dict(os.environ if env is None else env)
        self.process: subprocess.Popen[bytes] | None = None
        self.stopped = False
        self._began = 0.0

    def start(self) -> None:
        """Begin. A command that does not exist shows as the shell's exit code 127."""
        self._began = time.monotonic()
        self.process = subprocess.Popen(
            self.command,
            shell=True,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=2,
            stderr=2,
            start_new_session=True,
        )

    def ended(self) -> bool:
        """Whether nothing of it is left, background processes of the shell included."""
        return self.process is not None and self.process.poll() is not None and not self._send(0)

    def stop(self) -> None:
        """End the whole group: SIGINT, 2 s, SIGTERM, 5 s, SIGKILL."""
        if self.process is None or self.stopped:
            return
        self.stopped = not self.ended()
        for number, seconds in ((signal.SIGINT, 2.0), (signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)):
            end = time.monotonic() + seconds
            if not self._send(number):
                break
            while time.monotonic() < end and not self.ended():
                time.sleep(0.02)
        self.process.poll()

    def summary(self) -> dict[str, Any]:
        """The command, its exit code (None where we ended it) and how long it ran."""
        code = self.process.poll() if self.process is not None else None
        seconds = time.monotonic() - self._began if self._began else 0.0
        return {"command": self.command, "exit_code": None if self.stopped else code, "seconds": round(seconds, 3)}

    def note(self) -> str | None:
        """Where it failed by itself."""
        code = self.process.poll() if self.process is not None else None
        if self.stopped or not code:
            return None
        return f"the load ended with exit code {code}: {self.command}"

    def _send(self, number: int) -> bool:
        """Signal the group; False when it is gone."""
        assert self.process is not None
        try:
            os.killpg(self.process.pid, number)
        except (ProcessLookupError, PermissionError):
            return False
        return True


def load_of(command: str | None, http: HttpLoadSpec | None) -> Load | None:
    """The load that the options ask for."""
    if command is not None:
        sys.stderr.flush()
        return CommandLoad(command)
    return HttpLoad(http) if http is not None else None
