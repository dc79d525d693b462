"""Programs that were started with a dormant agent: how they are started, found again and profiled.

``awp-lint --agent CMD…`` replaces itself by the command, so that process id, exit code and signals are the program's
own; all that differs for it is the environment. Its control folder (see ``agent/dormant``) is named after that process
id and lies in the user's runtime folder, readable by nobody else. ``awp-lint PATH… --attach PID`` finds it by the id of
that process, or of any other process of the program where the system shows a process's environment.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import signal
import stat
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from awp_lint import __version__
from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling import reader
from awp_lint.detector.profiling.launch import Plan, RunOptions, environment, late_marks, start_error, write_plan
from awp_lint.detector.profiling.session import Session
from awp_lint.detector.profiling.supervise import DURATION, Care, Phases

if TYPE_CHECKING:
    from awp_lint.detector.finding import Finding
    from awp_lint.detector.profiling.run import ProfileOutcome, UnitLoop

_ANSWER = 10.0  # s for the program to answer, which looks twice a second ...
_WAKING = 60.0  # ... and from its answer until its agent is there
_CLOSING = 10.0  # s for it to write what it has


def agents_folder() -> Path:
    """Where control folders lie. Raises :class:`UsageError` where others could write there."""
    import platformdirs

    folder = Path(platformdirs.user_runtime_dir("awp-lint")) / "agents"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        state = folder.stat()
    except OSError as fault:
        raise UsageError(f"{folder}: {fault.strerror}") from None
    if state.st_uid != os.geteuid() or stat.S_IMODE(state.st_mode) & 0o077:
        raise UsageError(f"{folder}: must belong to you, and to nobody else")
    return folder


def run_with_agent(command: Sequence[str]) -> NoReturn:
    """Become the command, with a dormant agent in it. Raises :class:`UsageError` where it cannot be started."""
    folder = agents_folder()
    _sweep(folder)
    control = folder / str(os.getpid())
    shutil.rmtree(control, ignore_errors=True)
    control.mkdir(mode=0o700)
    (control / "runs").mkdir()
    (control / "dormant").write_text(__version__, encoding="utf-8")
    try:
        os.execvpe(command[0], list(command), environment(os.environ, control))
    except OSError as fault:
        shutil.rmtree(control, ignore_errors=True)
        raise UsageError(start_error(command, fault)) from fault


def _sweep(folder: Path) -> None:
    """Take away what programs that have ended left."""
    for control in folder.iterdir():
        if control.name.isdigit() and not _alive(int(control.name)) and not _members(control):
            shutil.rmtree(control, ignore_errors=True)


def _members(control: Path) -> list[int]:
    """Living processes that a run of the program has seen: its first one may be gone."""
    born = (place.name[1:].partition(".")[0] for place in control.glob("runs/*/p*.*"))
    return [int(pid) for pid in born if pid.isdigit() and _alive(int(pid))]


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def control_folder(target: str) -> Path:
    """The control folder of a process, or the folder itself. Raises :class:`UsageError`."""
    control = Path(target)
    if target.isdigit():
        control = agents_folder() / target
        if not (control / "dormant").exists():
            control = Path(_environment_of(int(target)).get("AWP_LINT_AGENT_SESSION", "/nowhere"))
        if not (control / "dormant").exists():
            gone = "" if _alive(int(target)) else "; there is no such process"
            raise UsageError(f"--attach {target}: not started by awp-lint --agent{gone}")
    if not (control / "dormant").exists():
        raise UsageError(f"--attach takes the id of a process that awp-lint --agent started, not {target!r}")
    version = (control / "dormant").read_text(encoding="utf-8")
    if version != __version__:
        raise UsageError(f"--attach {target}: started by awp-lint {version}, and this is {__version__}")
    return control


def _environment_of(pid: int) -> dict[str, str]:
    import psutil

    try:
        return dict(psutil.Process(pid).environ())
    except psutil.Error:
        return {}


@contextlib.contextmanager
def attached(target: str, plan: Plan, options: RunOptions) -> Iterator[Session]:
    """Profile a running program once. The session's files are there until the context ends.

    Raises :class:`UsageError` where there is no such program, it is being profiled already, or it does not answer.
    """
    control = control_folder(target)
    with _exclusively(control):
        number = max((int(place.name) for place in control.glob("runs/*") if place.name.isdigit()), default=0) + 1
        run = control / "runs" / str(number)
        run.mkdir(mode=0o700)
        try:
            write_plan(run, plan, options)
            care = options.care(plan)
            with open(run / "held", "wb") as held:
                fcntl.flock(held, fcntl.LOCK_EX)
                started = time.time_ns()
                part = control / "asked.part"
                part.write_text(str(number), encoding="utf-8")
                part.replace(control / "asked")
                watch = _Watch(run, care, target)
                try:
                    watch.follow()
                finally:
                    (control / "asked").unlink(missing_ok=True)
                    if options.late is not None:
                        options.late.close()
            session = reader.read_session(run, (), plan.marks, None, started, time.time_ns(), late_marks(options))
            session.command = session.processes[0].argv if session.processes else ()
            session.notes = (*watch.notes, *session.notes)
            session.load = care.load.summary() if care.load is not None else None
            yield session
        finally:
            # the folder's name stays taken: a process that was not there would otherwise mistake the next for this one
            for place in run.iterdir():
                shutil.rmtree(place, ignore_errors=True) if place.is_dir() else place.unlink(missing_ok=True)


@contextlib.contextmanager
def _exclusively(control: Path) -> Iterator[None]:
    with open(control / "lock", "wb") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError("this program is being profiled by somebody else already") from None
        yield


class _Watch:
    """Waits for a run to have what it needs, drives the load, and closes it. The program itself is never signalled."""

    def __init__(self, run: Path, care: Care, target: str) -> None:
        self.run = run
        self.care = care
        self.target = target
        self.phases = Phases(run)
        self.notes: list[str] = []
        self._interrupted = False

    def follow(self) -> None:
        """Return when the processes have written what they have."""
        previous = signal.signal(signal.SIGINT, self._interrupt)
        load = self.care.load
        try:
            self._await_answer()
            if load is not None:
                load.start()
            self._measure()
        finally:
            signal.signal(signal.SIGINT, previous)
            self._close()
            if load is not None:
                load.stop()
                note = load.note()
                self.notes += [note] if note else []

    def _interrupt(self, number: int, frame: object) -> None:
        self._interrupted = True

    def _await_answer(self) -> None:
        gone = self.target.isdigit() and not _alive(int(self.target))  # its children may still be there
        began, patience = time.monotonic(), 3.0 if gone else _ANSWER
        while not reader.process_folders(self.run) and not self._interrupted:
            faults = sorted(self.run.glob("injection-*.err"))
            if faults:
                last = faults[0].read_text(encoding="utf-8", errors="replace").strip().splitlines()
                raise UsageError(f"--attach {self.target}: the agent could not start: {last[-1] if last else ''}")
            if (self.run / "answered").exists():
                patience = _WAKING
            if time.monotonic() - began > patience:
                raise UsageError(f"--attach {self.target}: no process of it that has imported torch answers")
            time.sleep(0.05)

    def _measure(self) -> None:
        care = self.care
        began, windows = time.monotonic(), 0.0
        said = False
        while not self._interrupted and self._running():
            now = time.monotonic()
            care.tend(self.run)
            if not windows and self.phases.any("windows", "done", "closed"):
                windows = now
            if windows and (now > windows + (care.duration or DURATION) + care.delay() or self.phases.all_done()):
                return
            if not self.phases.any("warm-up", "windows", "done", "closed"):
                if now > began + care.max_wait:
                    self.notes.append(f"no accelerator or marked work within {care.max_wait:g} s")
                    return
                if not said and now > began + _ANSWER:
                    said = True
                    care.say(f"waiting for the program's work (at most {care.max_wait:g} s)")
            if care.load is not None and care.load.ended():
                return
            time.sleep(0.1)

    def _running(self) -> bool:
        return any(_alive(pid) for pid in self._pids())

    def _pids(self) -> list[int]:
        return [int(place.name[1:].partition(".")[0]) for place in reader.process_folders(self.run)]

    def _close(self) -> None:
        (self.run / "close").touch()
        end = time.monotonic() + _CLOSING
        while time.monotonic() < end:
            waiting = [
                place
                for place in reader.process_folders(self.run)
                if not (place / "ended").exists() and _alive(int(place.name[1:].partition(".")[0]))
            ]
            if not waiting:
                return
            time.sleep(0.05)
        self.notes.append("not every process had written its record in time")


def profile_running(
    findings: Sequence[Finding], units: Sequence[UnitLoop], target: str, options: Mapping[str, Any]
) -> ProfileOutcome:
    """Profile a running program with marks on the findings, and judge each.

    Raises :class:`UsageError` where there is no such program, it does not answer, or NumPy is missing.
    """
    from awp_lint.detector.profiling import run
    from awp_lint.detector.profiling.telemetry import Telemetry

    run.require_numpy()
    marks = run.plan(findings, units)
    plan = Plan(tuple(marks), run.digests(marks))
    with Telemetry() as telemetry, attached(target, plan, run.run_options(options, "")) as session:
        telemetry_summary = telemetry.summary(session)
        return run.with_late(options.get("late"), session, findings, telemetry_summary)
