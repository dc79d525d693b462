"""A window in which torch itself names every wait for the device, with the very instruction that waits.

``torch.cuda.set_sync_debug_mode`` makes each synchronising operation warn, in the frame that called it. The warnings
are filtered before all others, so that ``-W error`` does not make exceptions of them, and shown to nobody. Waits are
told by the innermost frame outside torch. ``census.json``: ``{"waits": [[path, line, column, end_line, end_column,
function, times], …]}``, columns 0-based UTF-8 bytes or null where this Python does not know them; or ``{"missing":
why}``.
"""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from _thread import allocate_lock
from typing import Any

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.tracer import torch_module, uses_cuda

MESSAGE = "called a synchronizing CUDA operation"
_MOST = 5_000  # different places


class Census:
    """``begin`` and ``end`` belong to the schedule's thread; the warnings come in the program's."""

    def __init__(self, record: Record, cwd: str) -> None:
        self.record = record
        self.cwd = cwd
        self.waits: dict[tuple[Any, ...], int] = {}
        self._places: dict[tuple[int, int], tuple[Any, ...]] = {}
        self._turns = allocate_lock()
        self._before: Any = 0
        self._filter: Any = None
        self._show: Any = None

    def begin(self) -> str:
        """Have waits told from here on; why it cannot be, else ""."""
        torch = torch_module()
        if torch is None or not uses_cuda(torch):
            return "the program uses no CUDA device, and a CPU waits for nothing"
        try:
            self._before = torch.cuda.get_sync_debug_mode()
            self._own = os.path.dirname(torch.__file__) + os.sep
            warnings.filterwarnings("always", message=MESSAGE)
            self._filter = warnings.filters[0]
            self._hook()
            torch.cuda.set_sync_debug_mode("warn")
        except Exception as fault:
            self.end()
            return f"this torch does not tell its waits: {fault}"
        return ""

    def end(self) -> None:
        """Put everything back."""
        torch: Any = torch_module()
        with contextlib.suppress(Exception):
            torch.cuda.set_sync_debug_mode(self._before)
        module: Any = warnings
        if self._show is not None and module._showwarnmsg is self._shown:
            module._showwarnmsg = self._show
        if self._filter is not None and self._filter in warnings.filters:
            warnings.filters.remove(self._filter)  # type: ignore[attr-defined]
            mutated = getattr(warnings, "_filters_mutated", None)
            if mutated is not None:
                mutated()
        self._filter = self._show = None

    def write(self, missing: str = "") -> None:
        """What was told, for the parent."""
        import json

        if missing:
            text = json.dumps({"missing": missing})
        else:
            text = json.dumps({"waits": [[*place, times] for place, times in self.waits.items()]})
        temporary = self.record.path("census.tmp")
        with open(temporary, "w", encoding="utf-8") as file:
            file.write(text)
        os.replace(temporary, self.record.path("census.json"))

    def _hook(self) -> None:
        module: Any = warnings
        original = self._show = module._showwarnmsg

        def shown(message: Any) -> None:
            try:
                ours = MESSAGE in str(message.message)
                if ours:
                    self._note()
            except Exception as fault:
                ours = False
                self.record.error("a wait could not be noted", fault)
            if not ours:
                original(message)

        self._shown = module._showwarnmsg = shown

    def _note(self) -> None:
        frame: Any = sys._getframe(2)
        while frame is not None and self._inner(frame.f_code.co_filename):
            frame = frame.f_back
        if frame is None:
            return
        place = self._place(frame)
        with self._turns:
            if place in self.waits or len(self.waits) < _MOST:
                self.waits[place] = self.waits.get(place, 0) + 1

    def _inner(self, name: str) -> bool:
        return name.startswith((self._own, "<frozen")) or name == warnings.__file__

    def _place(self, frame: Any) -> tuple[Any, ...]:
        code, at = frame.f_code, frame.f_lasti
        known = self._places.get((id(code), at))
        if known is None:
            line, end_line, column, end_column = frame.f_lineno, None, None, None
            positions = getattr(code, "co_positions", None)
            if positions is not None:
                for number, (first, last, left, right) in enumerate(positions()):
                    if number == at // 2 and None not in (first, last, left, right):
                        line, end_line, column, end_column = first, last, left, right
                        break
            path = os.path.realpath(os.path.join(self.cwd, code.co_filename))
            name = getattr(code, "co_qualname", code.co_name).replace(".<locals>", "")
            known = self._places[id(code), at] = (path, line, column, end_line, end_column, name)
        return known
