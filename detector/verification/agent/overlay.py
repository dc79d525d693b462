"""Modules compiled for a proof: with the units' ticks, and in a patched process from the patched text.

The machinery is that of marks compiled into a module. Nothing on the disk changes: the text comes from the session's
folder, the file name in the code stays the module's own.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from importlib.util import spec_from_file_location
from types import CodeType, ModuleType
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

    def start(self) -> None:
        """As for marks; modules that the patch adds are found where they would lie."""
        super().start()
        added = {path: file.after for path, file in self.proof.task.files.items() if file.created}
        if added and self.proof.task.patched:
            sys.meta_path.append(_Added(added))

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
            self.proof.overlaid[os.path.realpath(path)] = code is not None
        return code


class _Added:
    """Finds modules whose files do not exist, by their real path → text. Asked when every other finder has failed."""

    def __init__(self, texts: dict[str, bytes]) -> None:
        self.texts = texts

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec where one of the texts would lie in a folder that modules of this name come from."""
        base = name.rpartition(".")[2]
        for folder in sys.path if path is None else list(path):
            for place in (base + ".py", os.path.join(base, "__init__.py")):
                real = os.path.realpath(os.path.join(folder or os.getcwd(), place))
                if real in self.texts:
                    return spec_from_file_location(name, real, loader=_AddedLoader(name, real, self.texts[real]))
        return None


class _AddedLoader(SourceFileLoader):
    def __init__(self, name: str, path: str, text: bytes) -> None:
        super().__init__(name, path)
        self._text = text

    def get_code(self, fullname: str) -> CodeType:
        """From the patch's text: nothing is written, no cache either."""
        return compile(self._text, self.path, "exec", dont_inherit=True)
