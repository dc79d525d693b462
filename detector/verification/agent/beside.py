"""The original twice and the patched version once, side by side in this process: the route *instance*."""

from __future__ import annotations

import os
from typing import Any

from awp_lint.detector.profiling.agent.pace import Pace
from awp_lint.detector.verification.agent.device import device
from awp_lint.detector.verification.agent.lockstep import Lockstep
from awp_lint.detector.verification.agent.overlay import Overlay, ProofState
from awp_lint.detector.verification.agent.programs import Programs
from awp_lint.detector.verification.agent.shadow import Allowed
from awp_lint.detector.verification.agent.task import Task
from awp_lint.detector.verification.agent.witness import Witness

_INSIDE = "AWP_LINT_AGENT_BESIDE"  # set for the processes that the programs start


class Beside:
    """This process's programs and their measurement."""

    def __init__(self, state: ProofState, backend: Overlay, pace: Pace, task: Task) -> None:
        self.state = state
        self.backend = backend
        self.inner = bool(os.environ.get(_INSIDE))
        self.patch = task.patches[0]
        marks = [mark for found in state.plan.by_path.values() for mark in found if mark.unit]
        self._enclosing = [(os.path.realpath(mark.path), mark.function) for mark in marks]
        self.programs = Programs(task.order, [path for path, file in self.patch.files.items()], self._load)
        calls = frozenset(mark.number for mark in marks if mark.kind == "function")
        self.lockstep = Lockstep(
            self.programs,
            pace.kinds(),
            calls,
            self._witness,
            device,
            self.patch.seconds,
            self.patch.compare,
            task.seed,
        )
        self.programs.left = self.lockstep.left

    def install(self) -> None:
        """Before the interpreter runs anything of the program's. Processes that the programs start run on their own."""
        if self.inner:
            return
        self.programs.install()
        if self.programs.ready:
            os.environ[_INSIDE] = "1"
            self.state.programs = self.programs
            self.state.beside = self.lockstep.tick

    def _load(self, path: str, filename: str) -> Any:
        """The code of the script."""
        marks = self.state.marks_of(path)
        code = self.backend.compile(path, filename, marks, main=False) if isinstance(marks, list) else None
        if code is None:
            with open(path, "rb") as file:
                code = compile(file.read(), filename, "exec", dont_inherit=True)
        return code

    def _witness(self) -> Witness:
        return Witness(self.patch, self._enclosing, Allowed(**self.patch.allowed), device())

    @property
    def finished(self) -> bool:
        """Whether nothing more is to be learnt: measured and compared, or all programs have ended."""
        if not self.programs.ready or all(seat.ended for seat in self.programs.seats):
            return True
        return self.lockstep.settled

    def _exercised(self) -> bool:
        """Whether anything that is edited ran in the patched version; so does what runs as modules are loaded."""
        witness = self.lockstep.witness
        patched = {seat.number for seat in self.programs.seats if seat.arm == "B"}
        return witness is None or witness.elsewhere or not witness.edited or bool(patched & self.state.ran)

    def result(self) -> dict[str, Any]:
        """What is known so far, ready for JSON."""
        steps, programs = self.lockstep, self.programs
        found: dict[str, Any] = {
            "misfit": steps.misfit,
            "rounds": [[r["A"], r["A2"], r["B"]] for r in steps.rounds],
            "kept": steps.kept,
            "memory": steps.memory,
            "seen": steps.seen,
            "queued": steps.queued,
            "seconds": steps.measured,
            "unit": steps.unit,
            "notes": [],
            "equality": steps.equality,
            "errors": {seat.arm: seat.error for seat in programs.seats if seat.error},
            "outputs": {seat.arm: seat.heard.hexdigest() for seat in programs.seats if seat.ended and seat.heard_bytes},
            "loaded": sorted(path for seat in programs.seats if seat.arm == "B" for path in seat.codes),
            "exercised": self._exercised(),
            "inner": self.inner,
        }
        if not programs.ready and not self.inner:
            found["misfit"] = "only a script or a module (python FILE, python -m NAME) is run several times at once"
        if steps.fault is not None:
            found["failed"] = "%s: %s" % (type(steps.fault).__name__, steps.fault)
        return found
