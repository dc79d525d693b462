"""Marks put into a program that runs already, on Python without ``sys.monitoring``.

Its modules were compiled without marks. The file is compiled once more with them, and the code of each function that is
alive is exchanged for its marked twin; a frame that runs keeps the code that it began with. At the end the functions
get their own code back. Frames of marked code may outlive that, and run into the next time: so the numbers of marks in
the code differ from time to time, and the helpers let only their own pass.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from time import perf_counter_ns
from types import CodeType, FunctionType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.bytecode import nested
from awp_lint.detector.profiling.agent.compiled import Compiled, Finder
from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.rewrite import CLOSE, OPEN, TICK
from awp_lint.detector.profiling.agent.state import State

_STRIDE = 1 << 20  # marks of one time


class Attached(Compiled):
    """The back end for the ``turn``-th run of a program, counted from 1."""

    def __init__(self, state: State, turn: int) -> None:
        super().__init__(state)
        self.base = turn * _STRIDE
        self.swapped: list[tuple[FunctionType, CodeType]] = []

    def start(self) -> None:
        """Exchange the code of what is there, and mark what is imported from now on."""
        if "torch._dynamo" in sys.modules:
            self.dynamo_loads()
        self._helpers()
        self.finder = Finder(self)
        sys.meta_path.insert(0, self.finder)
        self._exchange()

    def stop(self) -> None:
        """Give the functions their code back. Helpers stay, to do nothing."""
        super().stop()
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        for function, code in self.swapped:
            function.__code__ = code
        self.swapped.clear()
        for name in (OPEN, CLOSE, TICK):
            setattr(builtins, name, {}.get)

    def rewritten(
        self, source: bytes, filename: str, marks: Sequence[AgentMark], main: bool
    ) -> tuple[CodeType, set[int]]:
        """As for a program that begins, with this time's numbers in the code."""
        moved = [mark._replace(number=mark.number + self.base) for mark in marks]
        code, placed = super().rewritten(source, filename, moved, main)
        return code, {number - self.base for number in placed}

    def _helpers(self) -> None:
        super()._helpers()
        setattr(builtins, TICK, self._tick)
        for name in (OPEN, CLOSE, TICK):
            setattr(builtins, name, self._own(getattr(builtins, name)))

    def _own(self, helper: Callable[..., Any]) -> Callable[..., Any]:
        base, top = self.base, self.base + _STRIDE

        def own(mark: int, *value: Any) -> Any:
            if base <= mark < top:
                return helper(mark - base, *value)
            return value[0] if value else None

        return own

    def _exchange(self) -> None:
        import gc

        began = perf_counter_ns()
        known: dict[str, Any] = {}
        found: dict[str, list[FunctionType]] = {}
        for function in [o for o in gc.get_objects() if type(o) is FunctionType]:
            filename = function.__code__.co_filename
            if filename not in known:
                known[filename] = self.state.marks_of(filename)
            if known[filename]:
                found.setdefault(filename, []).append(function)
        for filename, functions in found.items():
            self._exchange_in(filename, functions, known[filename])
        self.state.record.stall("looking for functions", perf_counter_ns() - began)

    def _exchange_in(self, filename: str, functions: list[FunctionType], marks: list[AgentMark]) -> None:
        before = set(self.state.armed)
        code = self.compile(filename, filename, marks)
        if code is None:
            return
        placed, self.state.armed = self.state.armed, before
        twins: dict[tuple[str, int], list[CodeType]] = {}
        for twin in nested(code):
            twins.setdefault((twin.co_name, twin.co_firstlineno), []).append(twin)
        running = {frame.f_code for top in sys._current_frames().values() for frame in _frames(top)}
        late = False
        for function in functions:
            key = (function.__code__.co_name, function.__code__.co_firstlineno)
            fitting = twins.get(key, [])
            if len(fitting) != 1 or not _marked(fitting[0]):
                continue
            if fitting[0].co_freevars != function.__code__.co_freevars:
                continue
            late = late or function.__code__ in running
            self.swapped.append((function, function.__code__))
            function.__code__ = fitting[0]
            self.state.armed.update(
                mark.number
                for mark in marks
                if mark.number in placed
                and any(
                    (inner.co_name, inner.co_firstlineno) == (mark.function.rpartition(".")[2], mark.function_line)
                    for inner in nested(fitting[0])
                )
            )
        if late:
            self.state.record.error("functions of %s that were running are marked from their next call on" % filename)


def _frames(frame: Any) -> Any:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _marked(code: CodeType) -> bool:
    """Whether a function's code, or that of one it makes, holds marks."""
    return any({OPEN, CLOSE, TICK} & set(inner.co_names) for inner in nested(code))
