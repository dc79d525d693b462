"""Modules compiled for a proof: with the units' ticks, and in a patched process from the patched text.

The machinery is that of marks compiled into a module. Nothing on the disk changes: the text comes from the session's
folder, the file name in the code stays the module's own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from types import CodeType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.compiled import Compiled
from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.plan import AgentMark, Plan
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.verification.agent.task import File, Task


class ProofState(State):
    """Ticks are handed on; files that the patch edits count as files with marks."""

    def __init__(self, record: Record, plan: Plan, task: Task, wake: Callable[[], None]) -> None:
        self.task = task
        self.watch: Callable[[int], None] | None = None
        self.overlaid: dict[str, bool] = {}  # files of the task that were loaded → whether through us
        super().__init__(record, plan, wake, lambda: None)

    def marks_of(self, filename: str) -> bool | list[AgentMark]:
        """The unit marks of a file; an empty list for one that only the patch is about."""
        found = super().marks_of(filename)
        if found is False:
            edited = self.file_of(filename)
            if edited is not None and self._digest(os.path.realpath(edited.path)) == edited.digest:
                return []
        return found

    def file_of(self, filename: str) -> File | None:
        """The task's file of this name."""
        if os.path.basename(filename) not in self.plan.names and os.path.join(self.cwd, filename) != self.main:
            return None
        return self.task.files.get(os.path.realpath(os.path.join(self.cwd, filename)))

    def tick(self, now: int, marks: tuple[int, ...]) -> None:
        """A unit begins."""
        self._tick(now, marks)
        watch = self.watch
        if watch is not None:
            for mark in marks:
                watch(mark)


class Overlay(Compiled):
    """The back end: compiles ticks in, and the patched text where this process is to run it."""

    name = "proof"

    def __init__(self, state: ProofState) -> None:
        super().__init__(state)
        self.proof = state

    def rewritten(
        self, source: bytes, filename: str, marks: Sequence[AgentMark], main: bool
    ) -> tuple[CodeType, set[int]]:
        """As for marks, from the text that this process is to run."""
        edited = self.proof.file_of(filename)
        if edited is None:
            return super().rewritten(source, filename, marks, main)
        if edited.before != source:
            raise ValueError("the file is not the text that was scanned")
        if self.proof.task.patched:
            source, marks = edited.after, edited.marks
        made = super().rewritten(source, filename, marks, main)
        self.proof.wake()
        return made

    def compile(self, path: str, filename: str, marks: Sequence[AgentMark], main: bool = False) -> Any:
        """The code of a file, or None where it must be loaded as it is: then nothing is proven of it."""
        code = super().compile(path, filename, marks, main)
        if self.proof.file_of(path) is not None:
            self.proof.overlaid[path] = code is not None
        return code
