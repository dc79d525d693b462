"""Looks at real calls of the edited functions: every call comes through here while the gate is shut.

The function's code is exchanged for one that hands its arguments over; both versions are then compared on copies of
them, and the original answers the program. Of the many calls a few are taken: the first, later ones at growing
distance, and those whose inputs look like none before.
"""

from __future__ import annotations

import builtins
import sys
from _thread import _local, allocate_lock
from time import perf_counter
from types import CodeType, FunctionType
from typing import Any, Callable

from awp_lint.detector.verification.agent.device import Device
from awp_lint.detector.verification.agent.shadow import Allowed, Compared, compare
from awp_lint.detector.verification.agent.versions import Target

GATE = "__awp_gate__"
_SAMPLES = 12  # of one function
_LOOKS = 6  # of them for inputs that look new
_SECONDS = 6.0  # for all comparisons of a process together
_UNKNOWN = 2  # calls that cannot be compared until it is given up


class Looked:
    """What was seen of one edited function. ``lines``: of the patched version, those that ran in a comparison."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.calls = 0
        self.compared: list[Compared] = []
        self.lines: set[int] = set()
        self.versions: dict[int, dict[str, FunctionType]] = {}
        self.looks: set[Any] = set()
        self.next = 1

    def unknown(self) -> list[str]:
        """Why calls could not be compared."""
        return [c.unknown for c in self.compared if c.unknown]

    def full(self) -> bool:
        """Whether no more is to be learnt."""
        return len(self.compared) >= _SAMPLES or len(self.unknown()) >= _UNKNOWN


class Gate:
    """Shut by :meth:`shut`, until :meth:`open`; ``looked`` has one entry a target."""

    def __init__(
        self, targets: list[Target], allowed: Allowed, device: Device, compares: bool, note: Callable[[str], None]
    ) -> None:
        self.looked = [Looked(target) for target in targets]
        self.allowed = allowed
        self.device = device
        self.compares = compares
        self.note = note
        self.seconds = 0.0
        self.comparing = False
        self.encloses = False  # an edited function was on the stack as a unit began
        self._codes = {id(code) for target in targets for code in (target.codes["A"], *target.own)}
        self._busy = allocate_lock()
        self._here = _local()
        self._bases: list[tuple[FunctionType, Looked]] = []

    def shut(self) -> None:
        """From the next call of each edited function on."""
        setattr(builtins, GATE, self._call)
        for looked in self.looked:
            for function in looked.target.functions:
                number = len(self._bases)
                looked.versions[number] = looked.target.callables(function)
                self._bases.append((function, looked))
                function.__code__ = turnstile(number, function.__code__)

    def open(self) -> None:
        """The functions have their own code again; calls under way end as they began."""
        for looked in self.looked:
            looked.target.restore()

    def enough(self) -> bool:
        """Whether every function has been looked at as often as is worth it."""
        return self.seconds > _SECONDS or all(looked.full() for looked in self.looked)

    def _call(self, number: int, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        _, looked = self._bases[number]
        versions = looked.versions[number]
        arm = getattr(self._here, "arm", None)
        if arm is not None:  # inside a comparison: the version that is being run
            return versions[arm](*args, **kwargs)
        looked.calls += 1
        if self.compares and self._wanted(looked, args, kwargs) and self._busy.acquire(False):
            self.comparing = True
            try:
                self._look(looked, versions, args, kwargs)
            except Exception as fault:
                self.note("a call could not be compared: %s: %s" % (type(fault).__name__, fault))
            finally:
                self.comparing = False
                self._busy.release()
        return versions["own"](*args, **kwargs)

    def unit(self, mark: int) -> None:
        """A unit begins, in the calling thread: is an edited function under way?"""
        frame: Any = None if self.encloses else sys._getframe(1)
        while frame is not None:
            if id(frame.f_code) in self._codes:
                self.encloses = True
                return
            frame = frame.f_back

    def _wanted(self, looked: Looked, args: tuple[Any, ...], kwargs: dict[str, Any]) -> bool:
        if looked.full() or self.seconds > _SECONDS:
            return False
        if looked.calls >= looked.next:
            looked.next = looked.calls * 2
            return True
        look = _look((*args, *kwargs.values()))
        if look not in looked.looks and len(looked.looks) < _LOOKS:
            looked.looks.add(look)
            return True
        return False

    def _look(self, looked: Looked, versions: dict[str, FunctionType], args: Any, kwargs: Any) -> None:
        def run(arm: str) -> Callable[..., Any]:
            def call(*args: Any, **kwargs: Any) -> Any:
                self._here.arm = arm
                try:
                    if arm == "B":
                        with Lines(versions["B"].__code__, looked.lines):
                            return versions["B"](*args, **kwargs)
                    return versions["A"](*args, **kwargs)
                finally:
                    self._here.arm = None

            return call

        code = versions["A"].__code__
        names = code.co_varnames[: code.co_argcount]
        began = perf_counter()
        looked.looks.add(_look((*args, *kwargs.values())))
        looked.compared.append(compare(run("A"), run("B"), args, kwargs, names, self.allowed, self.device))
        self.seconds += perf_counter() - began


class Lines:
    """Notes which lines of a code object run, in this thread; a tracer of the program's own has precedence."""

    def __init__(self, code: CodeType, lines: set[int]) -> None:
        self.code = code
        self.lines = lines

    def __enter__(self) -> None:
        self.active = sys.gettrace() is None
        if self.active:
            sys.settrace(self._calls)

    def __exit__(self, *exception: object) -> None:
        if self.active:
            sys.settrace(None)

    def _calls(self, frame: Any, event: str, argument: Any) -> Any:
        return self._in if frame.f_code is self.code else None

    def _in(self, frame: Any, event: str, argument: Any) -> Any:
        if event == "line":
            self.lines.add(frame.f_lineno)
        return self._in


def _look(values: tuple[Any, ...]) -> Any:
    """What inputs look like: types, shapes, small numbers."""
    found: list[Any] = []
    for value in values[:12]:
        shape = getattr(value, "shape", None)
        if shape is not None:
            found.append((type(value).__name__, tuple(int(n) > 1 for n in shape), str(getattr(value, "dtype", ""))))
        elif isinstance(value, (bool, type(None), str)):
            found.append(value if not isinstance(value, str) else len(value) < 16 and value)
        else:
            found.append(type(value).__name__)
    return tuple(found)


def turnstile(number: int, code: CodeType) -> CodeType:
    """Code that hands its arguments to the gate, with the free variables of ``code``."""
    free = code.co_freevars
    source = "def outer():\n"
    source += "".join("    %s = None\n" % name for name in free)
    source += "    def turnstile(*args, **kwargs):\n"
    source += "        if 0: (%s)\n" % ", ".join((*free, "None"))
    source += "        return %s(%d, args, kwargs)\n" % (GATE, number)
    module = compile(source, code.co_filename, "exec", dont_inherit=True)
    outer = next(constant for constant in module.co_consts if isinstance(constant, CodeType))
    inner = next(constant for constant in outer.co_consts if isinstance(constant, CodeType))
    if inner.co_freevars != free:
        raise ValueError("free variables of %s" % code.co_name)
    return inner.replace(co_name=code.co_name, co_firstlineno=code.co_firstlineno)
