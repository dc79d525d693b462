"""One process's agent: put together at the interpreter's start-up, taken apart at its end."""

from __future__ import annotations

import atexit
import os
import sys
from typing import Any

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.plan import Plan
from awp_lint.detector.profiling.agent.process import facts
from awp_lint.detector.profiling.agent.schedule import Schedule
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.tracer import torch_module

_agent: Agent | None = None


class Agent:
    """Record, plan, back end and schedule of this process."""

    def __init__(self, session: str, attached: int = 0) -> None:
        self.attached = attached  # which run of a program that had begun before, from 1; 0 where it begins with us
        self.record = Record(session)
        self.record.born()
        self.plan = Plan(session)
        self.state = State(self.record, self.plan, self._wake, self._resume)
        self.backend = self._choose()
        self.schedule = Schedule(self.state, self.backend, self.record)
        self.backend.start()
        if attached and self.backend.name == "monitoring":
            self.backend.take_running()
        elif attached and self.plan.waits_for_late():
            self._wake()  # torch is there, so that its import will not do it
        if self.plan.names and self.plan.options.get("whole"):
            self.schedule.whole()

    def _choose(self) -> Any:
        from awp_lint.detector.profiling.agent import monitor

        if monitor.available():
            try:
                return monitor.Monitor(self.state)
            except RuntimeError as fault:
                self.record.error("marks are compiled in instead", fault)
        if self.attached:
            from awp_lint.detector.profiling.agent.attached import Attached

            return Attached(self.state, self.attached)
        from awp_lint.detector.profiling.agent.compiled import Compiled

        return Compiled(self.state)

    def _wake(self) -> None:
        self.schedule.begin()

    def finish(self) -> None:
        """At the interpreter's end: end the window, write everything, take the marks out."""
        try:
            if not self.schedule.stop("the program ended"):
                self.record.error("the schedule did not end within 5 s")
            self.backend.stop()
            self.schedule.slices.tracer.settle()
            seen = self.state.armed or self.state.other_copies or self.record.errors
            if seen or torch_module() is not None or self.attached or self.schedule.phase != "waiting":
                self.record.save(clean_exit=True, **facts(self.state, self.backend))
            self.record.ended()
        except BaseException as fault:
            self.record.error("the agent could not end", fault)

    def forking(self) -> None:
        """Before a fork."""
        try:
            self.schedule.park()
        except BaseException as fault:
            self.record.error("the agent could not pause for a fork", fault)

    def after_fork(self) -> None:
        """After it, in the parent."""
        try:
            self.schedule.after_fork()
        except BaseException as fault:
            self.record.error("the agent could not go on after a fork", fault)

    def _resume(self) -> None:
        try:
            self.schedule.resume()
        except BaseException as fault:
            self.record.error("the agent could not go on after a fork", fault)

    def forked(self) -> None:
        """In a forked child: the parent's files are the parent's."""
        try:
            self.record = Record(self.record.session)
            self.record.born()
            self.state.record = self.record
            self.state.reset()
            self.schedule = Schedule(self.state, self.backend, self.record)
            self.backend.recording = False
            self.backend.renew()
            if self.plan.names and self.plan.options.get("whole"):
                self.schedule.whole()
            self._before_os_exit()
        except BaseException as fault:
            self.record.error("the agent could not follow a fork", fault)

    def _before_os_exit(self) -> None:
        """A child of ``multiprocessing`` ends by ``os._exit``, after its own finalisers, of which we become one."""
        util = sys.modules.get("multiprocessing.util")
        if util is not None:
            util.register_after_fork(self, lambda agent: util.Finalize(None, agent.finish, exitpriority=-1000))


def start(session: str) -> None:
    """Called once, by the injected ``sitecustomize``."""
    global _agent
    if _agent is not None or not os.path.isdir(session):
        return
    if os.path.exists(os.path.join(session, "dormant")):
        from awp_lint.detector.profiling.agent import dormant

        dormant.start(session)
        return
    if os.path.exists(os.path.join(session, "task.json")):
        from awp_lint.detector.verification.agent import core as proof

        proof.start(session)
        return
    agent = _agent = Agent(session)
    atexit.register(agent.finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(before=agent.forking, after_in_parent=agent.after_fork, after_in_child=agent.forked)
    sys.modules.pop("awp_lint.detector.profiling.agent.inject", None)
