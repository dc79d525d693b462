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
from awp_lint.detector.profiling.agent.warmth import Warmth, work
from awp_lint.detector.verification.agent.device import device
from awp_lint.detector.verification.agent.gate import Gate, Looked
from awp_lint.detector.verification.agent.overlay import Overlay, ProofState
from awp_lint.detector.verification.agent.runs import Runs
from awp_lint.detector.verification.agent.shadow import Allowed
from awp_lint.detector.verification.agent.task import CALLS, Edited, Task
from awp_lint.detector.verification.agent.versions import Misfit, Target, bind_imports, find, targets

_WARM_LIMIT = 30.0  # s
_LOOK_LIMIT = 12.0  # s for comparisons
_COMPARE_LIMIT = 60.0  # s for a comparison that is under way
_LOOK_UNITS = 24  # units that are watched at least, for the calls in each
_SEVERAL = 0.2  # calls a unit below which the function's own calls are the units
_PIECE = 0.05


class _Stop(Exception):
    pass


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
        self.runs: Runs | None = None
        self.gate: Gate | None = None
        self.targets: list[Target] = []
        self._bell = allocate_lock()
        self._bell.acquire()
        self._gone = allocate_lock()
        self._stopping = False
        self._started = False
        self._of: dict[str, list[Target]] = {}
        self._names: dict[str, str] = {}  # of files, as the running code has them
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
            if self.runs is not None:
                self.runs.end()
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
            self._warm_up()
            if self.task.route == "process":
                self.results["warm_ns"] = time_ns()
                self._enter("windows")
                self._wait_long(self.task.seconds)
            else:
                self._prove()
            self._enter("done")
        except _Stop:
            self._end()
            self._enter("closed")
        except BaseException as fault:
            self.results["misfit" if isinstance(fault, Misfit) else "failed"] = (
                str(fault) if isinstance(fault, Misfit) else "%s: %s" % (type(fault).__name__, fault)
            )
            self._end()
            self._enter("done")
        finally:
            self._gone.release()

    def _enter(self, phase: str) -> None:
        self._save()
        self.record.save(phase=phase, **facts(self.state, self.backend))

    def _wait(self, seconds: float) -> None:
        self._bell.acquire(timeout=seconds)
        if self._stopping or os.path.exists(os.path.join(self.record.session, "close")):
            self._stopping = True
            raise _Stop

    def _wait_long(self, seconds: float) -> None:
        end = perf_counter() + seconds
        while perf_counter() < end:
            self._wait(_PIECE)

    def _warm_up(self) -> None:
        warmth = Warmth()
        end = perf_counter() + _WARM_LIMIT
        while perf_counter() < end:
            ticks, ticking = self.pace.units(), self.pace.ticking()
            settled = warmth.settled(perf_counter(), ticks, work(0), ticking)
            if settled and (ticking or "torch" in sys.modules):
                return
            self._wait(_PIECE)
        self.results["notes"].append("the work per unit was not seen to become constant")

    def _prove(self) -> None:
        self._find()
        gate, calls, units = self._look()
        rare = not gate.encloses and calls < _SEVERAL * units
        by_calls = self.task.calls or units == 0 or rare
        self.results.update(calls=calls, units=units, by_calls=by_calls, unit="call" if by_calls else "")
        if not calls or any(c.found for looked in gate.looked for c in looked.compared):
            return
        self._enter("windows")
        called = [looked for looked in gate.looked if looked.calls]
        self._targets(min(called, key=lambda looked: looked.calls).target.edited if by_calls else None)
        self._measure(by_calls)

    def _find(self) -> None:
        end = perf_counter() + 5.0
        while True:
            try:
                self._targets(None)
                break
            except Misfit:
                if perf_counter() > end:
                    raise
                self._wait(0.25)  # what is lazily imported may be on its way
        for file in self.task.files.values():
            bind_imports(file, self._of[file.path])

    def _targets(self, calls: Edited | None) -> None:
        """Both versions of every edited function, compiled; ``calls`` ticks at each of its calls."""
        self.targets = []
        for path, file in self.task.files.items():
            ticking = calls if calls in file.functions else None
            for _ in range(2):
                name = self._names.get(path, file.path)
                made = targets(file, name, self.plan.by_path.get(path, []), ticking)
                find(made, path)
                self._names[path] = made[0].own[0].co_filename if made else name
                if self._names[path] == name:
                    break
            self._of[file.path] = made
            self.targets += made

    # -- comparisons --

    def _look(self) -> tuple[Gate, int, int]:
        """Watch some units with the gate shut; the calls of the edited functions and the units that began."""
        allowed = Allowed(**self.task.allowed)
        distributed: Any = sys.modules.get("torch.distributed")
        compares = self.task.compare
        if compares and distributed is not None and distributed.is_available() and distributed.is_initialized():
            compares = False
            self.results["notes"].append("several ranks: calls are not compared in the process")
        gate = Gate(self.targets, allowed, device(), compares, lambda text: self.record.error(text))
        before = self.pace.units()
        self.gate = gate
        gate.shut()
        self.state.watch = gate.unit
        began = perf_counter()
        try:
            while gate.comparing or perf_counter() < began + max(_LOOK_LIMIT, self.task.seconds / 4):
                self._wait(_PIECE)
                if gate.comparing and perf_counter() < began + _COMPARE_LIMIT:
                    continue
                seen = sum(looked.calls for looked in gate.looked)
                units = self.pace.units() - before
                found = any(c.found for looked in gate.looked for c in looked.compared)
                if found or (seen and units >= _LOOK_UNITS and (gate.enough() or perf_counter() > began + 3.0)):
                    break
                if seen and not self.pace.ticking() and gate.enough():
                    break
        finally:
            self.state.watch = None
            gate.open()
            self._save()
        return gate, sum(looked.calls for looked in gate.looked), self.pace.units() - before

    # -- times --

    def _measure(self, by_calls: bool) -> None:
        pace, requests = self._paced(by_calls)
        self.runs = runs = Runs(self.targets, pace, requests, device(), self.task.seed, self._unit_ns(pace, by_calls))
        runs.finished = self._ring
        runs.begin()
        self.state.watch = runs.tick
        end = perf_counter() + self.task.seconds
        saved = perf_counter()
        try:
            while perf_counter() < end and not runs.done:
                self._wait(_PIECE)
                if perf_counter() > saved + 2.0:
                    saved = perf_counter()
                    self._save()
        finally:
            self._end()

    def _paced(self, by_calls: bool) -> tuple[int, frozenset[int]]:
        """The mark that counts the units, and those of requests around them."""
        if by_calls:
            return CALLS, frozenset()
        kinds = self.pace.kinds()
        ticked = self.state.ticked()
        steps = {m: n for m, n in ticked.items() if kinds.get(m) == "step"}
        known = {m: n for m, n in ticked.items() if kinds.get(m) == "request"}
        pace = max(steps or known, key=lambda mark: (steps or known)[mark])
        return pace, frozenset(m for m in known if m != pace)

    def _unit_ns(self, pace: int, by_calls: bool) -> float:
        """About how long a unit takes: by what begins in half a second."""
        if by_calls:
            return 10e6  # a call a run would do
        began, before = perf_counter(), self.state.ticked().get(pace, 0)
        while perf_counter() < began + 0.5:
            self._wait(_PIECE)
        count = self.state.ticked().get(pace, 0) - before
        return (perf_counter() - began) * 1e9 / max(count, 1)

    def _end(self) -> None:
        """The program runs its own code again."""
        self.state.watch = None
        if self.runs is not None:
            if self.runs.fault is not None:
                self.record.error("the measurement failed", self.runs.fault)
            self.runs.end()

    def _save(self) -> None:
        runs = self.runs
        self.results["overlaid"] = self.state.overlaid
        if self.gate is not None:
            self.results["equality"] = [_equality(looked) for looked in self.gate.looked]
        if runs is not None:
            self.results.update(
                rounds=[[r["A"], r["A2"], r["B"]] for r in runs.rounds],
                kept=runs.kept,
                memory=runs.memory,
                seen=runs.seen,
                queued=runs.queued,
                encloses=runs.encloses,
            )
        try:
            import json

            temporary = self.record.path("proof.tmp")
            with open(temporary, "w", encoding="utf-8") as file:
                file.write(json.dumps(self.results))
            os.replace(temporary, self.record.path("proof.json"))
        except Exception as fault:
            self.record.error("proof.json could not be written", fault)


def _equality(looked: Looked) -> dict[str, Any]:
    found = [c for c in looked.compared if c.found]
    return {
        "function": looked.target.edited.label(),
        "calls": looked.calls,
        "compared": sum(not c.unknown for c in looked.compared),
        "unknown": looked.unknown(),
        "raised": next((c.raised for c in looked.compared if c.raised), ""),
        "found": [list(d) for d in found[0].found] if found else [],
        "lines": sorted(looked.lines),
    }


def start(session: str) -> None:
    """Called by the profile run's agent, once, where the session holds a task."""
    prover = Prover(session)
    atexit.register(prover.finish)
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=prover.forked)
    sys.modules.pop("awp_lint.detector.profiling.agent.inject", None)
