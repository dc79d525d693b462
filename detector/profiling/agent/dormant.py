"""A program that was started with the agent asleep in it, to be profiled later, again and again.

The session's folder of such a program is a control folder:

``dormant``      made by the launcher: the tool's version
``runs/N``       one profile run: a session's folder as any other, with ``plan.json`` and, while somebody waits for its
                 result, a lock on ``held``
``asked``        the name of the run that is asked for now

Until the program imports torch nothing happens but that its import is noticed; from then on one thread looks for
``asked`` twice a second. A run is a whole agent, put together for it and taken apart behind it: between runs no mark
and no event is left. Where the one who asked has gone without a word, the lock is free and the run ends.
"""

from __future__ import annotations

import os
import sys
from _thread import allocate_lock, start_new_thread
from time import time_ns
from typing import Any

_PERIOD = 0.5  # s between two looks
_ENDED = ("done", "closed")


class Dormant:
    """This process's part."""

    def __init__(self, control: str) -> None:
        self.control = control
        self.agent: Any = None
        self.done = ""  # the run that was served last
        self.runs = 0
        self._over = False
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._began = False

    def watch_imports(self) -> None:
        """Wake when torch is imported."""
        sys.meta_path.insert(0, _TorchComes(self))

    def begin(self) -> None:
        """Start the thread, once. Not through ``threading``: the program's thread list stays its own."""
        if not self._began:
            self._began = True
            self._gone.acquire()
            start_new_thread(self._main, ())

    def finish(self) -> None:
        """At the interpreter's end."""
        self._over = True
        if self._began:
            if self._bell.locked():
                self._bell.release()
            self._gone.acquire(timeout=10.0)

    def forked(self) -> None:
        """In a forked child: the thread stayed with the parent."""
        agent, began = self.agent, self._began
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._began = False
        if agent is not None:
            agent.forked()
        if began:
            self.begin()

    # -- the thread --

    def _main(self) -> None:
        try:
            if self.agent is not None:  # forked while a run was on
                self._serve(self.done)
            while not self._over:
                name = self._asked()
                if name and name != self.done:
                    self.done = name
                    self._serve(name)
                self._bell.acquire(timeout=_PERIOD)
        except BaseException as fault:
            self._complain(fault)
        finally:
            self._gone.release()

    def _asked(self) -> str:
        try:
            with open(os.path.join(self.control, "asked"), encoding="utf-8") as file:
                return file.read().strip()
        except OSError:
            return ""

    def _serve(self, name: str) -> None:
        run = os.path.join(self.control, "runs", name)
        try:
            if self.agent is None and held(run):
                with open(os.path.join(run, "answered"), "ab"):  # at once: what follows takes long on a busy machine
                    pass
                self.agent = self._awaken(run)
            agent = self.agent
            while agent is not None and not self._over and agent.schedule.phase not in _ENDED:
                self._bell.acquire(timeout=0.1)
                if agent.schedule.phase == "waiting" and os.path.exists(os.path.join(run, "close")):
                    break
                if not held(run):
                    agent.schedule.stop("nobody waits for it any more")
                    break
            if agent is not None:
                agent.finish()
        except Exception as fault:
            self._complain(fault)
        finally:
            self.agent = None

    def _awaken(self, run: str) -> Any:
        from awp_lint.detector.profiling.agent.core import Agent

        self.runs += 1
        began = time_ns()
        agent = Agent(run, attached=self.runs)
        agent.record.stall("attaching", time_ns() - began)
        return agent

    def _complain(self, fault: BaseException) -> None:
        try:
            import traceback

            place = os.path.join(self.control, "runs", self.done) if self.done else self.control
            with open(os.path.join(place, "injection-%d.err" % os.getpid()), "a", encoding="utf-8") as file:
                traceback.print_exception(type(fault), fault, fault.__traceback__, file=file)
        except Exception:
            return


class _TorchComes:
    """A finder that finds nothing: it leaves when torch is asked for."""

    def __init__(self, dormant: Dormant) -> None:
        self.dormant = dormant

    def find_spec(self, name: str, path: Any = None, target: Any = None) -> None:
        """None, always."""
        if name == "torch":
            if self in sys.meta_path:
                sys.meta_path.remove(self)
            self.dormant.begin()


def held(run: str) -> bool:
    """Whether somebody waits for the result: the lock is gone with its holder, however that ended."""
    try:
        import fcntl

        handle = os.open(os.path.join(run, "held"), os.O_RDONLY)
    except (OSError, ImportError):
        return False
    try:
        fcntl.flock(handle, fcntl.LOCK_SH | fcntl.LOCK_NB)
        return False
    except OSError:
        return True
    finally:
        os.close(handle)


def start(control: str) -> None:
    """Called once, by the injected ``sitecustomize``."""
    import atexit

    state = os.stat(control)
    if state.st_mode & 0o022:
        return  # whoever may write there could have our program read what they like
    dormant = Dormant(control)
    dormant.watch_imports()
    atexit.register(dormant.finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=dormant.forked)
