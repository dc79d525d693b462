"""One patch in the running program: find its functions, compare calls, measure."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any, Callable

from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.verification.agent.device import device
from awp_lint.detector.verification.agent.gate import Gate, Looked
from awp_lint.detector.verification.agent.overlay import ProofState
from awp_lint.detector.verification.agent.runs import Runs
from awp_lint.detector.verification.agent.shadow import Allowed
from awp_lint.detector.verification.agent.task import CALLS, Edited, Patch
from awp_lint.detector.verification.agent.versions import Misfit, Target, bind_imports, find, targets

_FIND_LIMIT = 5.0  # s for lazily imported modules
_LOOK_LIMIT = 12.0  # s for a first call
_LOOK_SECONDS = 2.5  # s of watching at least
_COMPARE_LIMIT = 60.0  # s for a comparison that is under way
_LOOK_UNITS = 12  # units that are watched at least, for the calls in each
_UNUSED_UNITS = 200  # without a call, after which none is waited for
_SEVERAL = 0.2  # calls a unit below which the function's own calls are the units
_PIECE = 0.05


class Stop(Exception):
    """The run is over, for the proof."""


class Part:
    """The proof of one patch. ``wait`` raises :class:`Stop` when the run is over; ``save`` writes all results."""

    def __init__(
        self,
        state: ProofState,
        pace: Pace,
        patch: Patch,
        seed: int,
        wait: Callable[[float], None],
        save: Callable[[], None],
    ) -> None:
        self.state = state
        self.pace = pace
        self.patch = patch
        self.seed = seed
        self.gate: Gate | None = None
        self.runs: Runs | None = None
        self.targets: list[Target] = []
        self.found: dict[str, Any] = {"notes": []}
        self._wait = wait
        self._save = save
        self._of: dict[str, list[Target]] = {}
        self._names: dict[str, str] = {}  # of files, as the running code has them

    def prove(self) -> None:
        """All of it; what goes wrong is noted in the result. Raises :class:`Stop`."""
        try:
            self._prove()
        except Stop:
            raise
        except Misfit as why:
            self.found["misfit"] = str(why)
        except Exception as fault:
            self.found["failed"] = "%s: %s" % (type(fault).__name__, fault)

    def end(self) -> None:
        """The program runs its own code again."""
        self.state.watch = None
        if self.gate is not None:
            self.gate.open()
        if self.runs is not None:
            if self.runs.fault is not None:
                self.state.record.error("a measurement failed", self.runs.fault)
            self.runs.end()

    def result(self) -> dict[str, Any]:
        """What is known so far, ready for JSON."""
        if self.gate is not None:
            self.found["equality"] = [_equality(looked) for looked in self.gate.looked]
        runs = self.runs
        if runs is not None:
            self.found.update(
                rounds=[[r["A"], r["A2"], r["B"]] for r in runs.rounds],
                kept=runs.kept,
                memory=runs.memory,
                seen=runs.seen,
                queued=runs.queued,
                encloses=runs.encloses,
            )
        return self.found

    def _prove(self) -> None:
        self._find()
        gate, calls, units = self._look()
        rare = not gate.encloses and calls < _SEVERAL * units
        by_calls = units == 0 or rare
        self.found.update(calls=calls, units=units, by_calls=by_calls, unit="call" if by_calls else "")
        if not calls or any(c.found for looked in gate.looked for c in looked.compared):
            return
        called = [looked for looked in gate.looked if looked.calls]
        self._targets(min(called, key=lambda looked: looked.calls).target.edited if by_calls else None)
        self._measure(by_calls)

    def _find(self) -> None:
        end = perf_counter() + _FIND_LIMIT
        while True:
            try:
                self._targets(None)
                break
            except Misfit:
                if perf_counter() > end:
                    raise
                self._wait(0.25)  # what is lazily imported may be on its way
        for file in self.patch.files.values():
            bind_imports(file, self._of[file.path])

    def _targets(self, calls: Edited | None) -> None:
        """Both versions of every edited function, compiled; ``calls`` ticks at each of its calls."""
        self.targets = []
        for path, file in self.patch.files.items():
            ticking = calls if calls in file.functions else None
            for _ in range(2):
                name = self._names.get(path, file.path)
                made = targets(file, name, self.state.plan.by_path.get(path, []), ticking)
                find(made, path)
                self._names[path] = made[0].own[0].co_filename if made else name
                if self._names[path] == name:
                    break
            self._of[file.path] = made
            self.targets += made

    # -- comparisons --

    def _look(self) -> tuple[Gate, int, int]:
        """Watch some units with the gate shut; the calls of the edited functions and the units that began."""
        allowed = Allowed(**self.patch.allowed)
        distributed: Any = sys.modules.get("torch.distributed")
        compares = self.patch.compare
        if compares and distributed is not None and distributed.is_available() and distributed.is_initialized():
            compares = False
            self.found["notes"].append("several ranks: calls are not compared in the process")
        gate = Gate(self.targets, allowed, device(), compares, lambda text: self.state.record.error(text))
        before = self.pace.units()
        self.gate = gate
        gate.shut()
        self.state.watch = gate.unit
        began = perf_counter()
        try:
            while gate.comparing or perf_counter() < began + max(_LOOK_LIMIT, self.patch.seconds / 4):
                self._wait(_PIECE)
                if gate.comparing and perf_counter() < began + _COMPARE_LIMIT:
                    continue
                seen = sum(looked.calls for looked in gate.looked)
                units = self.pace.units() - before
                found = any(c.found for looked in gate.looked for c in looked.compared)
                if found or (
                    seen and units >= _LOOK_UNITS and (gate.enough() or perf_counter() > began + _LOOK_SECONDS)
                ):
                    break
                if seen and not self.pace.ticking() and gate.enough():
                    break
                if not seen and units >= _UNUSED_UNITS and perf_counter() > began + 2 * _LOOK_SECONDS:
                    break
        finally:
            self.state.watch = None
            gate.open()
            self._save()
        return gate, sum(looked.calls for looked in gate.looked), self.pace.units() - before

    # -- times --

    def _measure(self, by_calls: bool) -> None:
        pace, requests = self._paced(by_calls)
        self.runs = runs = Runs(self.targets, pace, requests, device(), self.seed, self._unit_ns(pace, by_calls))
        runs.begin()
        self.state.watch = runs.tick
        began = saved = perf_counter()
        try:
            while perf_counter() < began + self.patch.seconds and not runs.done:
                self._wait(_PIECE)
                if perf_counter() > saved + 2.0:
                    saved = perf_counter()
                    self._save()
        finally:
            self.found["seconds"] = perf_counter() - began
            self.end()

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
        count = 0
        while perf_counter() < began + 0.5 and count < 6:
            self._wait(_PIECE)
            count = self.state.ticked().get(pace, 0) - before
        return (perf_counter() - began) * 1e9 / max(count, 1)


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
