"""Marks put into a program that runs already, on Python without ``sys.monitoring``.

Its modules were compiled without marks: see :mod:`exchange`. At the end the functions get their own code back. Frames
of marked code may outlive that, and run into the next time: so the numbers of marks in the code differ from time to
time, and the helpers let only their own pass.
"""

from __future__ import annotations

import builtins
import sys
from collections.abc import Sequence
from types import CodeType
from typing import Any, Callable

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

    def start(self) -> None:
        """Exchange the code of what is there, and mark what is imported from now on."""
        if "torch._dynamo" in sys.modules:
            self.dynamo_loads()
        self._helpers()
        self.finder = Finder(self)
        sys.meta_path.insert(0, self.finder)
        self.exchange.everywhere()

    def stop(self) -> None:
        """Give the functions their code back. Helpers stay, to do nothing."""
        super().stop()
        if self.finder in sys.meta_path:
            sys.meta_path.remove(self.finder)
        self.exchange.undo()
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
