"""Marks by code compiled with them: Python 3.9 to 3.11, and later ones where ``sys.monitoring`` cannot be had.

A finder in front of all others gives the modules that hold marks a loader that compiles them through :mod:`rewrite`.
The script that the interpreter itself would run comes through us too: a path hook takes it, as one takes a zip file,
and what would differ from a plain run is put right before its first statement and, for an uncaught exception, after its
last.

While nothing is recorded the helpers are C functions (an empty dictionary's ``get``, and a look-up that misses only at
a mark's first execution). Once Dynamo is loaded they are Python functions that do nothing while it traces, so that
compiled functions keep their graphs.
"""

from __future__ import annotations

import builtins
import os
import sys
from collections.abc import Sequence
from importlib.machinery import ModuleSpec, SourceFileLoader
from time import time_ns
from types import CodeType, ModuleType
from typing import Any, Callable

from awp_lint.detector.profiling.agent.exchange import Exchange
from awp_lint.detector.profiling.agent.files import command_line, script
from awp_lint.detector.profiling.agent.plan import AgentMark
from awp_lint.detector.profiling.agent.rewrite import CLOSE, MAIN, OPEN, TICK, rewrite
from awp_lint.detector.profiling.agent.selfcost import MARK, Cost, measure
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.warmth import dynamo_frames


class _First(dict):  # type: ignore[type-arg]
    """Marks that have run, each with None; asking for another notes its first execution."""

    def __init__(self, state: State) -> None:
        super().__init__()
        self.state = state

    def __missing__(self, mark: int) -> None:
        self[mark] = None
        try:
            self.state.reached((mark,))
        except Exception as fault:
            self.state.record.error("a first execution could not be noted", fault)


class Compiled:
    """The back end: same methods as :class:`monitor.Monitor`."""

    name = "compiled-in"
    switches_all = True  # a helper that asks which mark is to be recorded costs as much as recording

    def __init__(self, state: State) -> None:
        self.state = state
        self.recording = False
        self.first = _First(state)
        self.dynamo: Callable[[], bool] | None = None
        self.main: _Script | None = None
        self.exchange = Exchange(state, self.compile)
        self.finder: Finder | None = None

    def start(self) -> None:
        """Put the helpers, the finder and, for a script with marks, the path hook in place."""
        self._helpers()
        setattr(builtins, TICK, self._tick)
        self.finder = Finder(self)
        sys.meta_path.insert(0, self.finder)
        path = script()
        marks = self.state.marks_of(path) if path else False
        if path and isinstance(marks, list):
            self.main = _Script(self, path, marks)
            sys.path_hooks.insert(0, self.main.hook)
        if any("multiprocessing" in word for word in command_line()):
            self._spawned()

    def stop(self) -> None:
        """Stop recording. The helpers stay: code that calls them may still run."""
        self.recording = False
        self._helpers()

    def on(self) -> None:
        """Record marks from now on."""
        self.recording = True
        self.state.record_marks(True)
        self._helpers()

    def off(self) -> None:
        """Note first executions only."""
        self.recording = False
        self.state.record_marks(False)
        self._helpers()

    def renew(self) -> None:
        """After a fork."""
        self.first.clear()
        self._helpers()

    def switch(self) -> None:
        """Marks are to be recorded from here on, or no longer."""
        self._helpers()

    def own_cost(self) -> Cost:
        """What a recorded execution costs, see :mod:`selfcost`. While marks are recorded."""
        self.first[MARK] = None
        opened, closed = self._gated(self.dynamo) if self.dynamo is not None else self._loud()

        def marked(call: Callable[[], object]) -> None:
            opened(MARK)
            closed(MARK, call())

        def plain(call: Callable[[], object]) -> None:
            call()

        try:
            return measure(self.state.marks_ring(), marked, plain)
        finally:
            del self.first[MARK]

    def knock(self) -> None:
        """Nothing passes by here but marks and units."""

    def watch(self) -> None:
        """Nothing tells here which code begins to run: the threads' stacks have to do."""

    def watched(self) -> set[str]:
        """Files whose code began to run since :meth:`watch`."""
        return set()

    def adopt(self, first: int) -> None:
        """The plan has marks from number ``first`` on: put them into what lives."""
        if self.finder is not None:
            self.finder.renew()
        if self.dynamo is not None and dynamo_frames():
            self.state.record.error("dependencies are not marked: the program compiles functions of its own code")
            return
        self.exchange.everywhere(first)

    def dynamo_loads(self) -> None:
        """From now on functions may be traced: the helpers must vanish from what Dynamo sees."""
        if self.dynamo is None:
            torch: Any = sys.modules.get("torch")
            self.dynamo = getattr(getattr(torch, "compiler", None), "is_compiling", None)
            self._helpers()

    def compile(self, path: str, filename: str, marks: Sequence[AgentMark], main: bool = False) -> CodeType | None:
        """The marked code of a file, or None where it must be loaded as it is."""
        try:
            with open(path, "rb") as file:
                code, placed = self.rewritten(file.read(), filename, marks, main)
        except (OSError, SyntaxError, ValueError) as fault:
            # If the file itself is at fault, the program's own loader meets the same and says so.
            self.state.record.error("marks could not be compiled into %s" % path, fault)
            return None
        self.state.armed.update(placed)
        return code

    def rewritten(
        self, source: bytes, filename: str, marks: Sequence[AgentMark], main: bool
    ) -> tuple[CodeType, set[int]]:
        """The marked code, and the numbers of the marks in it."""
        return rewrite(source, filename, marks, main)

    def _tick(self, mark: int) -> None:
        try:
            if self.dynamo is None or not self.dynamo():
                self.state.tick(time_ns(), (mark,))
        except Exception as fault:
            self.state.record.error("a unit could not be noted", fault)

    def _helpers(self) -> None:
        opened: Callable[[int], None]
        closed: Callable[..., Any]
        if self.dynamo is not None:
            opened, closed = self._gated(self.dynamo)
        elif self._on():
            opened, closed = self._loud()
        else:
            opened, closed = self.first.__getitem__, {}.get
        setattr(builtins, OPEN, opened)
        setattr(builtins, CLOSE, closed)

    def _on(self) -> bool:
        thin = self.state.thin
        return self.recording and (thin is None or thin.on)

    def _loud(self) -> tuple[Callable[[int], None], Callable[[int, Any], Any]]:
        state, first = self.state, self.first
        ring = state.marks_ring()
        advance, last, local = ring.counter.__next__, ring.capacity - 1, ring.local
        times, halves = ring.times, ring.halves

        def opened(mark: int) -> None:
            try:
                if mark not in first:
                    first[mark]
                if state.errand is not None:
                    state.safe_point(codes=(mark << 1 | 1,))
                try:  # as Ring.write does, without the call
                    thread = local.id
                except AttributeError:
                    thread = ring.thread()
                number = advance() & last
                halves[number << 2 | 2] = thread
                halves[number << 2 | 3] = mark << 1 | 1
                times[number << 1] = time_ns()  # last: as little of us as can be lies between
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be written", fault)

        def closed(mark: int, value: Any) -> Any:
            now = time_ns()
            try:
                try:
                    thread = local.id
                except AttributeError:
                    thread = ring.thread()
                number = advance() & last
                halves[number << 2 | 2] = thread
                halves[number << 2 | 3] = mark << 1
                times[number << 1] = now
                if state.errand is not None:
                    state.safe_point(True, (mark << 1,))
            except RecursionError:
                pass  # the program is at its limit: no room for us
            except Exception as fault:
                state.record.error("a mark could not be written", fault)
            return value

        return opened, closed

    def _gated(self, tracing: Callable[[], bool]) -> tuple[Callable[[int], None], Callable[[int, Any], Any]]:
        # Dynamo takes ``tracing()`` for true and sees nothing of the rest, so that switching guards no graph.
        if hasattr(self, "_gates"):
            return self._gates
        backend, first = self, self.first

        def opened(mark: int) -> None:
            if tracing():
                return
            if mark not in first:
                first[mark]
            if backend.state.errand is not None:
                backend.state.safe_point(codes=(mark << 1 | 1,))
            if backend._on():
                backend.state.marks_ring().write(time_ns(), (mark << 1 | 1,))

        def closed(mark: int, value: Any) -> Any:
            if tracing():
                return value
            now = time_ns()
            if backend._on():
                backend.state.marks_ring().write(now, (mark << 1,))
                if backend.state.errand is not None:
                    backend.state.safe_point(True, (mark << 1,))
            return value

        self._gates: tuple[Callable[[int], None], Callable[[int, Any], Any]] = (opened, closed)
        return self._gates

    def _spawned(self) -> None:
        """A multiprocessing child loads the parent's script through ``runpy``, past every finder."""
        import runpy

        module: Any = runpy
        original = module._get_code_from_file

        def marked(*arguments: str) -> Any:
            filename = arguments[-1]
            marks = self.state.marks_of(filename)
            code = self.compile(filename, filename, marks) if isinstance(marks, list) else None
            if code is None:
                return original(*arguments)
            return code if sys.version_info >= (3, 12) else (code, filename)

        module._get_code_from_file = marked


class Finder:
    """Gives modules that hold marks a loader of ours; asks the other finders where they are."""

    def __init__(self, backend: Compiled) -> None:
        self.backend = backend
        self.renew()

    def renew(self) -> None:
        """The plan has grown."""
        self.names = {name[:-3] for name in self.backend.state.plan.names}
        self.packages = "__init__" in self.names

    def find_spec(self, name: str, path: Any = None, target: ModuleType | None = None) -> ModuleSpec | None:
        """A spec with our loader, or None for the next finder to answer."""
        if name == "torch._dynamo":
            self.backend.dynamo_loads()
        elif name == "torch" and self.backend.state.plan.waits_for_late():
            self.backend.state.wake()
        if name.rpartition(".")[2] not in self.names and not self.packages:
            return None
        try:
            return self._find(name, path, target)
        except Exception as fault:
            self.backend.state.record.error("a module's marks could not be placed", fault)
            return None

    def _find(self, name: str, path: Any, target: ModuleType | None) -> ModuleSpec | None:
        for finder in list(sys.meta_path):
            find = getattr(finder, "find_spec", None)
            if finder is self or find is None:
                continue
            spec: ModuleSpec | None = find(name, path, target)
            if spec is None:
                continue
            if type(spec.loader) is not SourceFileLoader or not spec.origin:
                return None
            marks = self.backend.state.marks_of(spec.origin)
            if not isinstance(marks, list):
                return None
            spec.loader = _Loader(spec.loader.name, spec.origin, self.backend, marks)
            return spec
        return None


class _Loader(SourceFileLoader):
    """Loads a module with marks in it."""

    def __init__(self, fullname: str, path: str, backend: Compiled, marks: Sequence[AgentMark]) -> None:
        super().__init__(fullname, path)
        self._awp = (backend, marks)

    def get_code(self, fullname: str) -> CodeType | None:
        """The marked code, or the plain one where marking fails."""
        backend, marks = self._awp
        code = backend.compile(self.path, self.path, marks)
        return code if code is not None else super().get_code(fullname)


class _Script:
    """The script that the interpreter was given, run through the machinery for directories and zip files."""

    def __init__(self, backend: Compiled, path: str, marks: Sequence[AgentMark]) -> None:
        self.backend = backend
        self.path = path
        self.marks = marks
        self.names: set[str] = set()

    def hook(self, path: str) -> _Script:
        """The path hook: takes the script, once, and nothing else."""
        if os.path.realpath(path) != os.path.realpath(self.path) or not _initial():
            raise ImportError(path)
        self.absolute = os.path.join(os.getcwd(), path)  # not made shorter: the interpreter does not either
        code = self.backend.compile(self.path, self.absolute, self.marks, main=True)
        if code is None:
            raise ImportError(path)
        self.code = code
        self.entry = path
        setattr(builtins, MAIN, self._settle)
        return self

    def find_spec(self, name: str, target: ModuleType | None = None) -> ModuleSpec | None:
        """The script as ``__main__``."""
        if name != "__main__":
            return None
        return ModuleSpec(name, self, origin=self.absolute)  # type: ignore[arg-type]

    def invalidate_caches(self) -> None:
        """Nothing is cached."""

    def get_code(self, name: str) -> CodeType:
        """What ``runpy`` runs."""
        import runpy

        module: Any = runpy
        original = module._run_code

        def run(code: CodeType, run_globals: dict[str, Any], *rest: Any, **more: Any) -> Any:
            module._run_code = original
            try:
                return original(code, run_globals, *rest, **more)
            except SystemExit:
                raise
            except BaseException as fault:
                _hide(fault, code)
                raise

        module._run_code = run
        return self.code

    def _settle(self, namespace: dict[str, Any]) -> None:
        """Before the script's first statement: make everything look as in a plain run."""
        try:
            sys.path_hooks.remove(self.hook)
            sys.path_importer_cache.pop(self.entry, None)
            folder = os.path.dirname(os.path.realpath(self.path))
            safe = getattr(sys.flags, "safe_path", False)
            if sys.path and sys.path[0] == self.entry:
                sys.path[0:1] = [] if safe else [folder]
            loader = SourceFileLoader("__main__", namespace["__file__"])
            namespace.update(__spec__=None, __package__=None, __cached__=None, __loader__=loader)
            delattr(builtins, MAIN)
        except Exception as fault:
            self.backend.state.record.error("the script's surroundings could not be put right", fault)


def _initial() -> bool:
    """Whether the interpreter has not begun to run anything yet."""
    main = sys.modules.get("__main__")
    return main is None or not hasattr(main, "__file__")


def _hide(fault: BaseException, code: CodeType) -> None:
    """Print an uncaught exception as a plain run would: without the frames that stand before the script."""
    trace = fault.__traceback__
    while trace is not None and trace.tb_frame.f_code is not code:
        trace = trace.tb_next
    if trace is None:
        return
    hook, kept = sys.excepthook, trace

    def shown(kind: Any, value: BaseException, whole: Any) -> Any:
        sys.excepthook = hook
        value.__traceback__ = kept
        return hook(kind, value, kept)

    sys.excepthook = shown
