"""What a process has only one of, kept apiece for several programs that take turns in it.

A program that does not run has its modules out of ``sys.modules``, so that each imports its own copies, whatever it
imports and whenever; with them go the random states, ``sys.argv``, and the settings of torch that hold for the whole
process.
"""

from __future__ import annotations

import hashlib
import os
import random
import sys
from _thread import allocate_lock
from collections.abc import Sequence
from types import CodeType
from typing import Any, Callable

from awp_lint.detector.verification.agent.device import device
from awp_lint.detector.verification.agent.randoms import Randoms

_FIRST_SEED = 67280421310721  # of torch's generators before anybody seeds them
_INSTALLED = ("site-packages", "dist-packages")


class Seat:
    """One program. ``arm``: the version that it runs; ``codes``: real path of a module of the task → its code."""

    def __init__(self, arm: str, number: int) -> None:
        self.arm = arm
        self.number = number
        self.turn = allocate_lock()
        self.turn.acquire()
        self.started = False
        self.ended = False
        self.error = ""
        self.codes: dict[str, CodeType] = {}
        self.modules: dict[str, Any] = {}
        self.argv: list[str] = []
        self.randoms: Any = None
        self.settings: list[Any] = []
        self.heard = hashlib.sha256()  # what it has written to its standard output
        self.heard_bytes = 0

    def hear(self, text: Any) -> None:
        """It has written this."""
        raw = text if isinstance(text, bytes) else str(text).encode("utf-8", "replace")
        self.heard.update(raw)
        self.heard_bytes += len(raw)


class Surroundings:
    """Takes a program's things out of the process and puts another's in. ``roots``: folders and files of its code."""

    def __init__(self, roots: Sequence[str]) -> None:
        self.roots = tuple(dict.fromkeys(os.path.realpath(root) for root in roots))
        self._argv = list(sys.argv)
        self._plain = random.getstate()
        self._own: dict[str, bool] = {}  # module name → whether it is the program's

    def leave(self, seat: Seat) -> None:
        """The program stops for a while."""
        seat.argv = list(sys.argv)
        seat.modules = {name: module for name, module in list(sys.modules.items()) if self._owned(name, module)}
        for name in seat.modules:
            del sys.modules[name]
        seat.randoms = Randoms(device()).read()
        seat.settings = [read() for read, _ in _settings()]

    def enter(self, seat: Seat) -> None:
        """It goes on, or begins."""
        sys.modules.update(seat.modules)
        sys.argv[:] = seat.argv if seat.started else self._argv
        if seat.randoms is not None:
            Randoms(device()).restore(seat.randoms)
        else:
            self._first()
        for value, (read, write) in zip(seat.settings, _settings()):
            if read() != value:
                write(value)

    def _first(self) -> None:
        """Random states as at the interpreter's start."""
        random.setstate(self._plain)
        torch: Any = sys.modules.get("torch")
        if torch is not None:
            torch.default_generator.manual_seed(_FIRST_SEED)
            if torch.cuda.is_initialized():
                torch.cuda.manual_seed_all(_FIRST_SEED)

    def _owned(self, name: str, module: Any) -> bool:
        found = self._own.get(name)
        if found is None:
            found = self._own[name] = name == "__main__" or self._inside(name, module)
        return found

    def _inside(self, name: str, module: Any) -> bool:
        if name.partition(".")[0] == "awp_lint":
            return False
        places = [getattr(module, "__file__", None)]
        if places[0] is None:
            places = list(getattr(module, "__path__", ()))
        return any(isinstance(place, str) and self._rooted(os.path.realpath(place)) for place in places)

    def _rooted(self, path: str) -> bool:
        for root in self.roots:
            if path == root or path.startswith(root + os.sep):
                inner = path[len(root) :].split(os.sep)
                return not any(name in inner for name in _INSTALLED)
        return False


def root_of(path: str) -> str:
    """Where the code around a module begins: its outermost package, or the file itself."""
    found = path
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        found, folder = folder, os.path.dirname(folder)
    return found


def _settings() -> list[tuple[Callable[[], Any], Callable[[Any], Any]]]:
    """Readers and writers of torch's settings for the process; none before it is there."""
    torch: Any = sys.modules.get("torch")
    if torch is None or not hasattr(torch, "backends"):
        return []
    found: list[tuple[Callable[[], Any], Callable[[Any], Any]]] = [
        (torch.get_default_dtype, torch.set_default_dtype),
        (torch.get_num_threads, torch.set_num_threads),
        (torch.are_deterministic_algorithms_enabled, torch.use_deterministic_algorithms),
    ]
    if torch.cuda.is_available():
        places = ((torch.backends.cuda.matmul, "allow_tf32"), (torch.backends.cudnn, "allow_tf32"))
        for owner, name in (*places, (torch.backends.cudnn, "benchmark"), (torch.backends.cudnn, "enabled")):
            found.append(_attribute(owner, name))
    else:
        found.append((torch.get_float32_matmul_precision, torch.set_float32_matmul_precision))
    return found


def _attribute(owner: Any, name: str) -> tuple[Callable[[], Any], Callable[[Any], Any]]:
    return (lambda: getattr(owner, name)), (lambda value: setattr(owner, name, value))
