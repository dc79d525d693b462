"""Marks that come while the program runs: in libraries, whose hot files only the run itself tells.

After the first round of windows the files whose code runs in a unit are written to ``hot.txt``; the parent looks
at those that nobody asked it to scan, and answers with ``late.json`` in the session's folder: a plan's ``marks`` and
``digests``, numbered behind the marks that are there, maybe none. From then on they are marks as any other.
"""

from __future__ import annotations

import os
import sys
from _thread import get_ident
from time import perf_counter, perf_counter_ns, time_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.profiling.agent.state import State

_PATIENCE = 60.0  # s for the parent to answer; it promises to be quicker
_MISSED = 3.0  # s of looking at stacks without meeting a call of a torch module
_LOOK = 0.005  # s from one look at the threads' frames to the next
_LEAST, _MOST, _UNITS = 0.3, 2.0, 3  # s to look for hot code, and units that it is to hold


class Late:
    """Called by the schedule's thread. ``wait`` is the schedule's: it raises where the run ends."""

    def __init__(self, state: State, backend: Any, record: Record, pace: Pace, wait: Callable[[float], None]) -> None:
        self.state = state
        self.backend = backend
        self.record = record
        self.pace = pace
        self.wait = wait
        self.since_ns = 0  # when the marks came; 0 where none did
        self._looking = 0.0  # since when a call of a torch module is looked for
        self._asked = False

    def adopt(self) -> bool:
        """Tell the parent what is hot, wait for its answer, place the marks. Whether there are any."""
        answer = os.path.join(self.record.session, "late.json")
        if not os.path.exists(answer):  # another process may have asked before
            self.record.hot(sorted(self._hot()))
            end = perf_counter() + _PATIENCE
            while not os.path.exists(answer):
                if perf_counter() > end:
                    self.record.error("nobody answered which dependencies are to be marked")
                    return False
                self.wait(0.05)
        import json

        with open(answer, encoding="utf-8") as file:
            loaded = json.load(file)
        if not loaded["marks"]:
            return False
        began = perf_counter_ns()
        paced = self.pace.counts()[0] > 0
        marks = [raw for raw in loaded["marks"] if not (paced and raw.get("unit"))]
        self.state.plan.extend(marks, loaded["digests"], int(loaded["first"]))
        self.pace.renew()
        self.backend.adopt(int(loaded["first"]))
        self.since_ns = time_ns()
        self.record.facts["late"] = {"first": int(loaded["first"]), "since_ns": self.since_ns}
        self.record.stall("marks in dependencies", perf_counter_ns() - began)
        return True

    def forward_runs(self) -> None:
        """Where no mark and no callback tells: whether a torch module's call stands on a thread's stack now.

        Calls that are over in no time are hardly ever met so: after some seconds the next one is asked to tell.
        """
        own, now = get_ident(), perf_counter()
        self._looking = self._looking or now
        if now - self._looking > _MISSED:
            self._ask()
        for thread, frame in sys._current_frames().items():
            step: Any = frame if thread != own else None
            while step is not None and self.state.forward is None:
                if step.f_code.co_name == "_call_impl":
                    self.state.forward_seen(step.f_code)
                step = step.f_back

    def _ask(self) -> None:
        """Have the next call of a torch module tell, by a hook that takes itself away; none where Dynamo is loaded,
        which would see it."""
        modules: Any = sys.modules.get("torch.nn.modules.module")
        register = getattr(modules, "register_module_forward_pre_hook", None)
        if self._asked or register is None or "torch._dynamo" in sys.modules:
            return
        self._asked = True
        state = self.state

        def told(*_: object) -> None:
            try:
                handle.remove()
                state.forward_seen(modules.Module._call_impl.__code__)
            except Exception as fault:
                state.record.error("the first call of a torch module could not be noted", fault)

        handle = register(told)

    def _hot(self) -> set[str]:
        """Files whose code runs now: those that the back end meets, and those on the threads' stacks."""
        found: set[str] = set()
        own = get_ident()
        began, units = perf_counter(), self.pace.units()
        self.backend.watch()
        try:
            while True:
                for thread, frame in sys._current_frames().items():
                    step: Any = frame if thread != own else None
                    while step is not None:
                        found.add(step.f_code.co_filename)
                        step = step.f_back
                passed = perf_counter() - began
                done = self.pace.units() - units >= _UNITS or not self.pace.ticking()
                if passed > (_LEAST if done else _MOST):
                    break
                self.wait(_LOOK)
        finally:
            found |= self.backend.watched()
        return {os.path.join(self.state.cwd, name) for name in found if not name.startswith("<")}


def led_by(plan: Any, cwd: str) -> Any:
    """``[path, line, function]`` of the innermost frame above that lies in the scanned code; None without one."""
    frame = sys._getframe(2)
    roots = plan.roots
    while frame is not None:
        name = frame.f_code.co_filename
        if not name.startswith("<"):
            path = os.path.realpath(os.path.join(cwd, name))
            for root in roots:
                inside = path == root or path.startswith(root.rstrip(os.sep) + os.sep)
                if inside and "site-packages" not in path[len(root) :]:
                    function = getattr(frame.f_code, "co_qualname", frame.f_code.co_name).replace(".<locals>", "")
                    return [path, frame.f_lineno, function]
        frame = frame.f_back  # type: ignore[assignment]
    return None
