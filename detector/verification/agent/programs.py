"""The user's program several times in one process, side by side: one version each, one at a time.

What the interpreter was to run is run by us, in a thread for each version. A program stops only where it counts a unit,
in the thread that counts them, and goes on when its turn comes; so each is where it would be without the others. Never
do two run at the same time, but for threads of theirs that work on their own.
"""

from __future__ import annotations

import builtins
import os
import signal
import sys
from _thread import allocate_lock, start_new_thread
from collections.abc import Sequence
from types import ModuleType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.files import command_line, script
from awp_lint.detector.verification.agent.seats import Seat, Surroundings, root_of


class Programs:
    """The programs of this process, in the order in which they begin. ``load``: path, file name → the code of a script.

    ``left`` is told when one of them ends.
    """

    def __init__(self, arms: Sequence[str], files: Sequence[str], load: Callable[[str, str], Any]) -> None:
        self.seats = [Seat(arm, number) for number, arm in enumerate(arms)]
        self.current = self.seats[0]
        self.ready = False  # whether they are run by us at all
        self.left: Callable[[Seat], None] = lambda seat: None
        self._load = load
        self._files = list(files)
        self._home = allocate_lock()
        self._home.acquire()
        self._script: str | None = None
        self._entry = ""
        self._surroundings: Surroundings | None = None

    # -- in place of the program --

    def install(self) -> None:
        """Stand where the interpreter would run the script or the module that it was given."""
        import runpy

        self._script = script()
        if self._script is None and _module() is None:
            return
        self.ready = True
        module: Any = runpy
        self._run_module, self._details = module._run_module_as_main, module._get_module_details
        module._run_module_as_main = self._instead
        if self._script is not None:
            sys.path_hooks.insert(0, self._hook)

    def _hook(self, path: str) -> Any:
        """The path hook: makes the interpreter run the script as a folder with a ``__main__`` in it, through runpy."""
        main = sys.modules.get("__main__")
        running = main is not None and hasattr(main, "__file__")
        if running or self._script is None or os.path.realpath(path) != os.path.realpath(self._script):
            raise ImportError(path)
        self._entry = path  # which may be longer than what was given
        return self

    def find_spec(self, name: str, target: Any = None) -> None:
        """What the script's entry of the path holds: nothing."""

    def _instead(self, name: str, alter_argv: bool = True) -> None:
        import runpy

        module: Any = runpy
        module._run_module_as_main = self._run_module
        if self._script is not None:
            sys.path_hooks.remove(self._hook)
            sys.path_importer_cache.pop(self._entry, None)
            folder = os.path.dirname(os.path.realpath(self._script))
            if sys.path and sys.path[0] == self._entry:
                sys.path[0:1] = [] if getattr(sys.flags, "safe_path", False) else [folder]
            self._run, roots = self._as_script, [folder]
        else:
            self._run, roots = (lambda: self._as_module(name)), [os.getcwd()]
        self._surroundings = Surroundings([*roots, *(root_of(path) for path in self._files)])
        _deaf()
        sys.stdout = _Heard(sys.stdout, self)
        sys.modules.pop("__main__", None)
        self._go(self.seats[0])
        self._home.acquire()
        if any(seat.error for seat in self.seats if seat.arm != "B"):
            sys.exit(1)

    def _as_script(self) -> None:
        path = self._script
        assert path is not None
        absolute = os.path.join(os.getcwd(), path)
        main = ModuleType("__main__")
        main.__dict__.update(__file__=absolute, __builtins__=builtins, __cached__=None, __doc__=None)
        sys.modules["__main__"] = main
        exec(self._load(path, absolute), main.__dict__)

    def _as_module(self, name: str) -> None:
        sys.modules["__main__"] = main = ModuleType("__main__")
        _, spec, code = self._details(name)
        sys.argv[0] = spec.origin
        main.__dict__.update(
            __file__=spec.origin, __builtins__=builtins, __cached__=spec.cached, __doc__=None, __spec__=spec,
            __package__=spec.parent, __loader__=spec.loader,
        )  # fmt: skip
        exec(code, main.__dict__)

    # -- whose turn it is --

    def switch(self, seat: Seat) -> None:
        """From the current program to another: the calling thread, which counts its units, waits for its next turn."""
        own = self.current
        if seat is own or seat.ended:
            return
        self._leave(own)
        self._go(seat)
        own.turn.acquire()

    def _leave(self, seat: Seat) -> None:
        assert self._surroundings is not None
        self._surroundings.leave(seat)

    def _go(self, seat: Seat) -> None:
        assert self._surroundings is not None
        self.current = seat
        self._surroundings.enter(seat)
        if seat.started:
            seat.turn.release()
        else:
            seat.started = True
            start_new_thread(self._live, (seat,))

    def _live(self, seat: Seat) -> None:
        try:
            self._run()
        except SystemExit as end:
            if end.code not in (None, 0):
                seat.error = "it ended with exit code %s" % end.code
        except BaseException as fault:
            seat.error = "%s: %s" % (type(fault).__name__, str(fault).split("\n")[0][:160])
            _tell(fault)
        seat.ended = True
        self.left(seat)
        if seat is self.current:
            # Each of the others runs to its own end; the process lives as long.
            following = next((other for other in self.seats if not other.ended), None)
            self._leave(seat)
            if following is not None:
                self._go(following)
            else:
                self._home.release()


class _Heard:
    """The standard output, each program's apart."""

    def __init__(self, stream: Any, programs: Programs) -> None:
        self._stream = stream
        self._programs = programs

    def write(self, text: Any) -> Any:
        self._programs.current.hear(text)
        return self._stream.write(text)

    def writelines(self, lines: Any) -> None:
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


def _module() -> str | None:
    """The module on the interpreter's command line (``-m name``), if it runs one."""
    words = command_line()[1:]
    while words and words[0].startswith("-"):
        word = words.pop(0)
        if word in ("-X", "-W", "--check-hash-based-pycs"):
            words[:1] = []
        elif word == "-m":
            return words[0] if words else None
        elif not word.startswith("--") and "c" in word:
            return None
    return None


def _deaf() -> None:
    """Handlers of signals cannot be set outside the main thread: a program that sets one is let believe that it did."""
    module: Any = signal
    real = module.signal

    def pretended(number: Any, handler: Any) -> Any:
        import threading

        if threading.current_thread() is threading.main_thread():
            return real(number, handler)
        return signal.getsignal(number)

    module.signal = pretended


def _tell(fault: BaseException) -> None:
    import traceback

    traceback.print_exception(type(fault), fault, fault.__traceback__)
