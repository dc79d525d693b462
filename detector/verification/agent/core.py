"""One process's part in a proof: wait until the program is warm, compare, then measure; all in the open record.

The thread of this module only waits and decides; code is exchanged and timed in the program's own threads, at the
ticks of its units. ``proof.json`` in the process's folder holds the results so far, written anew as they come, so that
a run that is cut short leaves what it had.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
from _thread import allocate_lock, start_new_thread
from time import perf_counter, time_ns
from typing import Any

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.profiling.agent.plan import Plan
from awp_lint.detector.profiling.agent.process import facts
from awp_lint.detector.profiling.agent.tracer import torch_module
from awp_lint.detector.profiling.agent.warmth import Warmth, work
from awp_lint.detector.verification.agent.beside import Beside
from awp_lint.detector.verification.agent.laps import Laps
from awp_lint.detector.verification.agent.overlay import Overlay, ProofState
from awp_lint.detector.verification.agent.part import Part, Stop
from awp_lint.detector.verification.agent.task import Task

_WARM_LIMIT = 30.0  # s
_UNTICKED = 5.0  # s after which a program whose modules are loaded is not expected to count units any more
_PIECE = 0.05


class Prover:
    """Record, plan, task and thread of this process."""

    def __init__(self, session: str) -> None:
        self.record = Record(session)
        self.record.born()
        self.plan = Plan(session)
        self.task = Task(session)
        self.plan.names |= {os.path.basename(path) for path in self.task.files}
        self.state = ProofState(self.record, self.plan, self.task, self.begin)
        self.backend = Overlay(self.state)
        self.pace = Pace(self.state)
        self.results: dict[str, Any] = {"route": self.task.route, "arm": self.task.arm, "notes": []}
        self.parts: list[Part] = []
        self.beside: Beside | None = None
        self._laps: Laps | None = None
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._stopping = False
        self._started = False
        if self.task.route == "instance":
            self.beside = Beside(self.state, self.backend, self.pace, self.task)
            self.beside.install()
        self.backend.start()

    # -- called from the program's threads --

    def begin(self) -> None:
        """The program's work begins: start the thread, once."""
        if self._started or self._stopping:
            return
        self._started = True
        self._gone.acquire()
        start_new_thread(self._main, ())

    def finish(self) -> None:
        """At the interpreter's end."""
        try:
            self._stopping = True
            if self._started:
                self._ring()
                self._gone.acquire(timeout=5.0)
            self.backend.stop()
            self.results["ended_ns"] = time_ns()
            self._save()
            self.record.save(clean_exit=True, **facts(self.state, self.backend))
            self.record.ended()
        except BaseException as fault:
            self.record.error("the proof could not end", fault)

    def forked(self) -> None:
        """In a forked child: it runs the program's own code and proves nothing."""
        try:
            self._stopping = True
            self.state.watch = None
            self.state.wake = lambda: None
            self._end()
            self.record = Record(self.record.session)
            self.record.born()
            self.state.record = self.record
            self.state.reset()
            atexit.unregister(self.finish)
        except BaseException as fault:
            self.record.error("the proof could not follow a fork", fault)

    def _ring(self) -> None:
        with contextlib.suppress(RuntimeError):  # already rung
            self._bell.release()

    # -- the thread --

    def _main(self) -> None:
        try:
            self._enter("warm-up")
            if self.beside is not None:
                self._side_by_side(self.beside)
                return
            self._warm_up()
            if self.task.route == "process":
                self.results["warm_ns"] = time_ns()
                self._laps = Laps(self.pace.kinds())
                self.state.watch = self._laps.tick
                self._enter("windows")
                self._wait_long(self.task.patches[0].seconds)
            else:
                self._prove()
            self._enter("done")
        except Stop:
            self._end()
            self._enter("closed")
        except BaseException as fault:
            self.results["failed"] = "%s: %s" % (type(fault).__name__, fault)
            self._end()
            self._enter("done")
        finally:
            self._gone.release()

    def _side_by_side(self, beside: Beside) -> None:
        """Only waits: the programs take turns by themselves."""
        steps = beside.lockstep
        while steps.phase == "warm" and not beside.finished and not steps.cold():
            self._wait(_PIECE)
        self._enter("windows")
        saved = perf_counter()
        while not beside.finished:
            self._wait(_PIECE)
            if perf_counter() > saved + 2.0:
                saved = perf_counter()
                self._save()
        self._enter("done")

    def _enter(self, phase: str) -> None:
        self._save()
        self.record.save(phase=phase, **facts(self.state, self.backend))

    def _wait(self, seconds: float) -> None:
        self._bell.acquire(timeout=seconds)
        if self._stopping or os.path.exists(os.path.join(self.record.session, "close")):
            self._stopping = True
            raise Stop

    def _wait_long(self, seconds: float) -> None:
        end = perf_counter() + seconds
        while perf_counter() < end:
            self._wait(_PIECE)

    def _warm_up(self) -> None:
        warmth = Warmth()
        end = perf_counter() + _WARM_LIMIT
        loaded = 0.0  # since when all modules of the patches are there, and torch
        while perf_counter() < end:
            ticks, ticking = self.pace.units(), self.pace.ticking()
            settled = warmth.settled(perf_counter(), ticks, work(0), ticking)
            if not loaded and torch_module() is not None and self._all_loaded():
                loaded = perf_counter()
            if settled and (ticking or (loaded and perf_counter() > loaded + _UNTICKED)):
                return
            self._wait(_PIECE)
        self.results["notes"].append("the work per unit was not seen to become constant")

    def _all_loaded(self) -> bool:
        return all(path in self.state.overlaid or file.created for path, file in self.task.files.items())

    def _prove(self) -> None:
        self._enter("windows")
        for number, patch in enumerate(self.task.patches):
            part = Part(self.state, self.pace, patch, self.task.seed + number, self._wait, self._save)
            self.parts.append(part)
            try:
                part.prove()
            finally:
                part.end()
                self._save()

    def _end(self) -> None:
        """The program runs its own code again."""
        for part in self.parts:
            part.end()
        if self.beside is not None:
            self.beside.lockstep.stop()

    def _save(self) -> None:
        self.results["overlaid"] = self.state.overlaid
        if self._laps is not None:
            self.results["laps"] = self._laps.longest()
        self.results["patches"] = [part.result() for part in (self.parts if self.beside is None else [self.beside])]
        try:
            import json

            temporary = self.record.path("proof.tmp")
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps(self.results))
            os.replace(temporary, self.record.path("proof.json"))
        except Exception as fault:
            self.record.error("proof.json could not be written", fault)


def start(session: str) -> None:
    """Called by the profile run's agent, once, where the session holds a task."""
    prover = Prover(session)
    atexit.register(prover.finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=prover.forked)
    sys.modules.pop("awp_lint.detector.profiling.agent.inject", None)
