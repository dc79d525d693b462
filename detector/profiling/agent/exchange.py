"""Marks put into functions that live already, on Python without ``sys.monitoring``.

Their file is compiled once more with the marks, and the code of each function that is alive is exchanged for its marked
twin; a frame that runs keeps the code that it began with.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from time import perf_counter_ns
from types import CodeType, FunctionType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.bytecode import nested
from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.rewrite import CLOSE, OPEN, TICK
from awp_lint.detector.profiling.agent.state import State


class Exchange:
    """``compile(path, filename, marks)`` gives the marked code of a file and arms what lies in it; None where it fails.

    What was exchanged can be taken back.
    """

    def __init__(self, state: State, compile: Callable[[str, str, list[AgentMark]], CodeType | None]) -> None:
        self.state = state
        self.compile = compile
        self.swapped: list[tuple[FunctionType, CodeType]] = []

    def everywhere(self, first: int = 0) -> None:
        """Exchange the code of all functions in files that hold marks with numbers from ``first`` on."""
        import gc

        began = perf_counter_ns()
        known: dict[str, Any] = {}
        found: dict[str, list[FunctionType]] = {}
        for function in [o for o in gc.get_objects() if type(o) is FunctionType]:
            filename = function.__code__.co_filename
            if filename not in known:
                marks = self.state.marks_of(filename)
                new = isinstance(marks, list) and any(mark.number >= first for mark in marks)
                known[filename] = marks if new else False
            if known[filename]:
                found.setdefault(filename, []).append(function)
        for filename, functions in found.items():
            self._in_file(filename, functions, known[filename])
        self.state.record.stall("looking for functions", perf_counter_ns() - began)

    def undo(self) -> None:
        """Give the functions their own code back."""
        for function, code in self.swapped:
            function.__code__ = code
        self.swapped.clear()

    def _in_file(self, filename: str, functions: list[FunctionType], marks: list[AgentMark]) -> None:
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


def _frames(frame: Any) -> Iterator[Any]:
    while frame is not None:
        yield frame
        frame = frame.f_back


def _marked(code: CodeType) -> bool:
    """Whether a function's code, or that of one it makes, holds marks."""
    return any({OPEN, CLOSE, TICK} & set(inner.co_names) for inner in nested(code))
