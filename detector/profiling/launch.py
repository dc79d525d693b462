"""Run the user's command with the agent in it, as if we were not there.

The command inherits our standard streams, working folder, process group and environment; the only difference that it
can see is two variables and one more folder on ``PYTHONPATH``, which the agent takes off ``sys.path`` before anything
else runs. We receive SIGINT and SIGTERM, ask the agents to end their windows, and pass the signal on.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import awp_lint
from awp_lint.detector.profiling import agent, reader
from awp_lint.detector.profiling.httpload import HttpLoadSpec, read_bodies
from awp_lint.detector.profiling.load import load_of
from awp_lint.detector.profiling.ready import split_url
from awp_lint.detector.profiling.session import PlannedMark, Session
from awp_lint.detector.profiling.supervise import Care, Outcome, Supervisor


class LateMarks(Protocol):
    """Who answers the agents' question which marks come while the program runs (see ``agent/late``)."""

    room: int  # marks that may come
    marks: tuple[PlannedMark, ...]  # that came
    seconds: float  # for which the windows waited

    @property
    def roots(self) -> Sequence[str]:
        """Real paths of the files and folders that hold the user's code."""

    def poll(self, folder: Path, first: int) -> None:
        """Look after the session's folder; returns soon. ``first``: the number of the first mark that may come."""

    def close(self) -> None:
        """The program has ended."""


class LaunchError(Exception):
    """The command could not be started; the message is one line for the user."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What the agent shall mark. ``digests``: sha256 of each marked file as it was scanned, by absolute path."""

    marks: tuple[PlannedMark, ...] = ()
    digests: Mapping[str, str] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """One more than the largest index."""
        return max((planned.index for planned in self.marks), default=-1) + 1


@dataclass(frozen=True, slots=True)
class RunOptions:
    """How a run goes. Times in seconds."""

    directory: str | None = None  # the session's folder; a temporary one, kept, by default
    duration: float | None = None  # of the windows; a program that is still up then is stopped if this was given
    max_wait: float = 600.0  # for readiness, and for the first work of a program that does not end
    warmup: float | None = None  # None: found automatically
    whole: bool = False  # one window with marks over the whole run: counts every execution, traces nothing
    ready_url: str | None = None
    ready_port: int | None = None
    load: str | None = None  # a command for the shell
    load_url: str | None = None
    rate: float = 1.0  # requests a second to load_url
    load_body: Sequence[str] | None = None  # JSON or @FILE
    env: Mapping[str, str] | None = None
    say: Callable[[str], None] = lambda line: None
    streams: str | None = None  # a folder: the program's output goes to files in it, and its input is empty
    until_done: bool = False  # stop the program once its agents have done their task
    limit: float | None = None  # from its first window; a program that is still up then is stopped
    late: LateMarks | None = None
    memory: bool = False  # the allocator's account beside the unprofiled windows
    census: bool = False  # a window in which torch names every wait for the device

    def care(self, plan: Plan) -> Care:
        """What the run is to be watched for. Raises :class:`UsageError` for addresses and bodies that are none."""
        http = HttpLoadSpec(self.load_url, self.rate, read_bodies(self.load_body)) if self.load_url else None
        if self.ready_url is not None:
            split_url(self.ready_url, "--ready-url")
        return Care(
            duration=self.duration,
            max_wait=self.max_wait,
            ready_url=self.ready_url,
            ready_port=self.ready_port,
            load_url=self.load_url,
            load=load_of(self.load, http),
            say=self.say,
            until_done=self.until_done,
            limit=self.limit,
            tend=self._tender(plan),
            delay=lambda: self.late.seconds if self.late is not None else 0.0,
        )

    def _tender(self, plan: Plan) -> Callable[[Path], None]:
        late, first = self.late, plan.size
        return (lambda folder: None) if late is None else lambda folder: late.poll(folder, first)


def write_plan(folder: Path, plan: Plan, options: RunOptions) -> None:
    """Write what the agents read into the session's folder."""
    marks = [mark_row(planned) for planned in plan.marks]
    settings: dict[str, Any] = {"duration": options.duration, "warmup": options.warmup, "whole": options.whole}
    settings["memory"] = options.memory
    if options.late is not None:
        settings |= {"late": options.late.room, "roots": list(options.late.roots), "census": options.census}
    text = json.dumps({"options": settings, "digests": dict(plan.digests), "marks": marks})
    (folder / "plan.json").write_text(text, encoding="utf-8")
    names = sorted({os.path.basename(planned.path) for planned in plan.marks})
    (folder / "plan.names").write_text("\n".join(names), encoding="utf-8", errors="surrogateescape")


def mark_row(planned: PlannedMark) -> dict[str, Any]:
    """A mark as the agents read it."""
    return {
        "index": planned.index,
        "path": planned.path,
        "module": planned.module,
        "kind": planned.mark.kind.value,
        "line": planned.mark.line,
        "column": planned.mark.column,
        "end_line": planned.mark.end_line,
        "end_column": planned.mark.end_column,
        "function": planned.mark.function,
        "function_line": planned.mark.function_line,
        "unit": planned.unit,
    }


def environment(base: Mapping[str, str], session: Path) -> dict[str, str]:
    """The program's environment: ours with the agent's way in."""
    inject = str(Path(agent.__file__).parent / "inject")
    env = dict(base)
    env["PYTHONPATH"] = os.pathsep.join([inject, env["PYTHONPATH"]]) if env.get("PYTHONPATH") else inject
    env["AWP_LINT_AGENT_ROOT"] = str(Path(awp_lint.__file__).parent)
    env["AWP_LINT_AGENT_SESSION"] = str(session)
    return env


def run_profiled(command: Sequence[str], plan: Plan, options: RunOptions | None = None) -> Session:
    """Run ``command`` to its end with the agent in it. Raises :class:`LaunchError` where it cannot be started."""
    options = options or RunOptions()
    folder = Path(options.directory or tempfile.mkdtemp(prefix="awp-lint-"))
    folder.mkdir(parents=True, exist_ok=True)
    write_plan(folder, plan, options)
    env = environment(os.environ if options.env is None else options.env, folder)
    care = options.care(plan)
    started = time.time_ns()
    try:
        outcome = _Child(command, env, options.streams).follow(folder, care)
    finally:
        if options.late is not None:
            options.late.close()
    session = reader.read_session(
        folder, tuple(command), plan.marks, outcome.exit_code, started, time.time_ns(), late_marks(options)
    )
    session.notes = (*outcome.notes, *session.notes)
    session.stopped, session.load = outcome.stopped, outcome.load
    return session


def late_marks(options: RunOptions) -> tuple[PlannedMark, ...]:
    """The marks that came while the program ran."""
    return options.late.marks if options.late is not None else ()


class _Child:
    """The running command, and our own handlers of the signals that somebody may send us meanwhile."""

    def __init__(self, command: Sequence[str], env: Mapping[str, str], streams: str | None = None) -> None:
        self.pending: list[int] = []
        self.previous = {
            number: signal.getsignal(number)
            for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
            if signal.getsignal(number) is not signal.SIG_IGN
        }
        for number in self.previous:
            signal.signal(number, self._received)
        try:
            # Descriptors that we did not open pass through, as they would from a shell.
            with _redirected(streams) as redirected:
                self.process = subprocess.Popen(list(command), env=dict(env), close_fds=False, **redirected)
        except OSError as fault:
            self._restore()
            raise LaunchError(start_error(command, fault)) from fault

    def _restore(self) -> None:
        for number, handler in self.previous.items():
            signal.signal(number, handler)

    def _received(self, number: int, frame: object) -> None:
        self.pending.append(number)

    def follow(self, folder: Path, care: Care) -> Outcome:
        """Until its end, see :mod:`awp_lint.detector.profiling.supervise`."""
        try:
            return Supervisor(self.process, folder, care, self.pending).follow()
        finally:
            self._restore()


@contextlib.contextmanager
def _redirected(folder: str | None) -> Iterator[dict[str, Any]]:
    """Arguments for the child's standard streams: files ``stdout`` and ``stderr`` in ``folder``, or ours."""
    if folder is None:
        yield {}
        return
    with contextlib.ExitStack() as stack:
        output, errors = (stack.enter_context(open(Path(folder) / name, "wb")) for name in ("stdout", "stderr"))
        yield {"stdin": subprocess.DEVNULL, "stdout": output, "stderr": errors}


def start_error(command: Sequence[str], fault: OSError) -> str:
    """Why a command could not be started, in a line."""
    name = command[0] if command else ""
    if isinstance(fault, FileNotFoundError) and not shutil.which(name):
        return f"cannot start {name}: command not found"
    return f"cannot start {name}: {fault.strerror or fault}"
