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
from awp_lint.detector.verification.agent.programs import Programs
from awp_lint.detector.verification.agent.task import File, Task
from awp_lint.detector.verification.agent.versions import by_path, changed

SEAT = 20  # bits of a mark's number; those above tell the program that it ticks in, where several run side by side
EDITED = 1 << 17  # marks that only note whether an edited function ran


class ProofState(State):
    """Ticks are handed on; files that the patch edits count as files with marks."""

    def __init__(self, record: Record, plan: Plan, task: Task, wake: Callable[[], None]) -> None:
        self.task = task
        self.watch: Callable[[int], None] | None = None
        self.overlaid: dict[str, bool] = {}  # files of the task that were loaded → whether through us
        self.ran: set[int] = set()  # programs in which an edited function ran, by their numbers
        self.programs: Programs | None = None  # that run side by side in this process
        self.beside: Callable[[int, int, int], None] | None = None  # told of their units: program, mark, frame
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

    def reached(self, marks: tuple[int, ...]) -> None:
        """Marks run for the first time; of programs side by side each has its own."""
        self.ran.update((mark >> SEAT) - 1 for mark in marks if mark & EDITED)
        plain = tuple(mark & (1 << SEAT) - 1 for mark in marks if not mark & EDITED)
        if plain:
            super().reached(plain)

    @property
    def patched(self) -> bool:
        """Whether what is loaded now is to be the patched text."""
        return self.programs.current.arm == "B" if self.programs is not None else self.task.patched

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
        if added:
            sys.meta_path.append(_Added(added, self.proof))
        if self.proof.programs is not None and self.main is not None:
            sys.path_hooks.remove(self.main.hook)  # the script is run by them
            self.main = None

    def rewritten(
        self, source: bytes, filename: str, marks: Sequence[AgentMark], main: bool
    ) -> tuple[CodeType, set[int]]:
        """As for marks, from the text that this process is to run."""
        edited = self.proof.file_of(filename)
        if edited is not None:
            if edited.before != source:
                raise ValueError("the file is not the text that was scanned")
            if self.proof.patched:
                source, marks = edited.after, edited.marks
        programs = self.proof.programs
        if programs is not None:
            seat = programs.current
            noting = () if edited is None else _notes(edited, source)
            own = [mark._replace(number=mark.number | seat.number + 1 << SEAT) for mark in (*marks, *noting)]
            code, _ = super().rewritten(source, filename, own, main)
            seat.codes[os.path.realpath(filename)] = code
            made = code, {mark.number for mark in marks}
        else:
            made = super().rewritten(source, filename, marks, main)
        if edited is not None:
            self.proof.wake()
        return made

    def _tick(self, mark: int) -> None:
        beside = self.proof.beside
        if beside is None:
            super()._tick(mark)
        elif self.dynamo is None or not self.dynamo():
            beside((mark >> SEAT) - 1, mark & (1 << SEAT) - 1, id(sys._getframe(1)))

    def compile(self, path: str, filename: str, marks: Sequence[AgentMark], main: bool = False) -> Any:
        """The code of a file, or None where it must be loaded as it is: then nothing is proven of it."""
        code = super().compile(path, filename, marks, main)
        if self.proof.file_of(path) is not None:
            self.proof.overlaid[os.path.realpath(path)] = code is not None
        return code


def _notes(file: File, source: bytes) -> list[AgentMark]:
    """Marks on the functions that the patch edits, in one of its texts: they note the first time that one runs."""
    codes = by_path(compile(source, "", "exec", dont_inherit=True))
    found: list[AgentMark] = []
    for edited in changed(file.before, file.after):
        code = codes.get(edited)
        if code is not None and code.co_flags & 0x2:  # CO_NEWLOCALS: a function, no class
            line, name = code.co_firstlineno, edited.label()
            found.append(AgentMark(EDITED + len(found), file.path, "", "function", line, 0, line, 0, name, line, None))
    return found


class _Added:
    """Finds modules whose files do not exist, by their real path → text. Asked when every other finder has failed."""

    def __init__(self, texts: dict[str, bytes], state: ProofState) -> None:
        self.texts = texts
        self.state = state

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec where one of the texts would lie in a folder that modules of this name come from."""
        if not self.state.patched:
            return None
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
