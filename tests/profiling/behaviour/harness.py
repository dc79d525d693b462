"""Runs a program plainly and under the agent, and holds the agent's record against what the program says it did.

A program of these tests notes each execution of its marked statements itself, with :data:`LOG`: that is the independent
account that the record must agree with.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import pickle
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from awp_lint.detector.profiling.session import ProcessSession, Session, WindowKind

Wanted = tuple[str, str, str | None]

# What programs are made with: ``work(n)`` takes about n milliseconds and notes when it began and ended. One small file
# a process, written through, so that a process that is killed leaves what it did. ``now < until(seconds, kind)`` holds
# for so long, and with us until a window of this kind was held in the process, however slow the machine is today.
LOG = """
import os as _os, threading as _threading, time as _time
_log = {}
def work(n=1.0):
    began = _time.time_ns()
    _time.sleep(n / 1e3)
    pid = _os.getpid()
    if pid not in _log:
        name = _os.path.join(_os.environ["LOG"], "log.%d" % pid)
        _log[pid] = _os.open(name, _os.O_WRONLY | _os.O_CREAT | _os.O_APPEND)
    _os.write(_log[pid], b"%d %d %d\\n" % (began, _time.time_ns(), _threading.get_native_id()))
    return n
class until:
    def __init__(self, seconds, kind="marks"):
        now = _time.monotonic()
        self.kind, self.end, self.last, self.looked, self.over = kind, now + seconds, now + 60, 0.0, False
        self.session = _os.environ.get("AWP_LINT_AGENT_SESSION")
    def __gt__(self, now):
        if now < self.end:
            return True
        if self.session is None or self.over or now > self.last:
            return False
        if now > self.looked + 0.05:
            self.looked, self.over = now, self.held()
        return not self.over
    def held(self):
        import json
        for name in _os.listdir(self.session):
            if name.startswith("p%d." % _os.getpid()):
                try:
                    with open(_os.path.join(self.session, name, "process.json")) as file:
                        state = json.load(file)
                except OSError:
                    return False
                kinds = [w["kind"] for w in state["windows"] if w["complete"]]
                return self.kind in kinds or state["phase"] in ("done", "closed")
        return True
"""


@dataclass(frozen=True)
class Ran:
    """What a shell would have seen."""

    code: int
    stdout: str
    stderr: str


@dataclass
class Both:
    """A program without and with us."""

    plain: Ran
    ours: Ran
    session: Session
    said: list[str]
    log: dict[int, list[tuple[int, int, int]]]  # by pid: began, ended, thread of each work() in the run with us
    seconds: tuple[float, float] = (0.0, 0.0)
    extra: dict[str, object] = field(default_factory=dict)

    def same(self, *numbers: str, drop: str = "") -> None:
        """Nobody could tell the runs apart by output and exit code.

        What ``numbers`` match (pids, ports, times) may differ, and what ``drop`` matches may be missing.
        """

        def seen(ran: Ran) -> tuple[int, str, str]:
            texts = [ran.stdout, ran.stderr]
            for pattern in numbers:
                texts = [re.sub(pattern, "N", text) for text in texts]
            return ran.code, *(re.sub(drop, "", text) if drop else text for text in texts)

        for ours, plain in zip(seen(self.ours), seen(self.plain), strict=True):
            assert ours == plain

    def process(self) -> ProcessSession:
        """The one process that did marked work."""
        (found,) = (p for p in self.session.processes if p.reached)
        return found

    def workers(self) -> list[ProcessSession]:
        """The processes that did marked work."""
        return [p for p in self.session.processes if p.reached]


@dataclass
class Program:
    """A program's text in a folder of its own, with what to mark in it."""

    folder: Path
    text: str
    wanted: Sequence[Wanted] = (("call", "work()", None),)
    name: str = "program.py"

    def __post_init__(self) -> None:
        self.path = self.folder / self.name
        self.path.write_text(LOG + self.text, encoding="utf-8")


Drive = Callable[[subprocess.Popen[bytes], Path], None]


def run_both(
    program: Program,
    command: Sequence[str] | None = None,
    *,
    python: str = sys.executable,
    env: Mapping[str, str] | None = None,
    drive: Drive | None = None,
    options: Mapping[str, object] | None = None,
    stdin: bytes = b"",
    timeout: float = 180.0,
) -> Both:
    """Run the command (default: the program itself) both ways at the same time, each in a folder of its own.

    ``drive`` is called for each run with its top process and its folder while it runs; the process is the program
    itself without us, and ours with us. ``PORT`` in the command is a free port of each run's own, also in the folder's
    file ``port``.
    """
    command = list(command or [python, str(program.path)])
    runs = [_Run(program, kind, env, stdin) for kind in ("plain", "ours")]
    runs[0].start([word.replace("PORT", runs[0].port) for word in command])
    job = runs[1].folder / "job.json"
    result = runs[1].folder / "session.pickle"
    directory = runs[1].folder / "session"
    job.write_text(
        json.dumps(
            {
                "program": str(program.path),
                "wanted": list(program.wanted),
                "command": [word.replace("PORT", runs[1].port) for word in command],
                "options": {**(options or {}), "directory": str(directory)},
                "result": str(result),
            }
        )
    )
    runs[1].start([sys.executable, str(Path(__file__).with_name("driver.py")), str(job)])
    done = []
    try:
        if drive is not None:
            with ThreadPoolExecutor() as drivers:
                for ended in [drivers.submit(drive, run.process, run.folder) for run in runs]:
                    ended.result()
        for run in runs:
            done.append(run.finish(timeout))
    finally:
        for run in runs:
            run.kill()
    assert result.exists(), done[1].stderr
    session, said = pickle.loads(result.read_bytes())
    return Both(done[0], done[1], session, said, read_log(runs[1].folder), (runs[0].seconds, runs[1].seconds))


class _Run:
    def __init__(self, program: Program, kind: str, env: Mapping[str, str] | None, stdin: bytes) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix=f"{kind}.", dir=program.folder))
        self.env = {**os.environ, "LOG": str(self.folder), "PYTHONDONTWRITEBYTECODE": "1", **(env or {})}
        self.cwd = program.folder
        (self.folder / "stdin").write_bytes(stdin)
        self.seconds = 0.0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = str(free.getsockname()[1])
        (self.folder / "port").write_text(self.port)

    def start(self, command: list[str]) -> None:
        self.began = time.monotonic()
        self.out = open(self.folder / "stdout", "wb")  # noqa: SIM115 - the process keeps it
        self.err = open(self.folder / "stderr", "wb")  # noqa: SIM115
        with open(self.folder / "stdin", "rb") as stdin, _hangups():
            self.process = subprocess.Popen(
                command,
                stdin=stdin,
                stdout=self.out,
                stderr=self.err,
                env=self.env,
                cwd=self.cwd,
                start_new_session=True,
            )

    def finish(self, timeout: float) -> Ran:
        code = self.process.wait(timeout)
        self.seconds = time.monotonic() - self.began
        self.out.close()
        self.err.close()
        # each run's folder is the one difference that a program may print
        texts = [
            (self.folder / name).read_text(errors="replace").replace(str(self.folder), "FOLDER")
            for name in ("stdout", "stderr")
        ]
        return Ran(code if code >= 0 else 128 - code, *texts)

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)


@contextlib.contextmanager
def _hangups() -> Iterator[None]:
    """A program started here can be hung up, also where the tests run under ``nohup``: what is ignored is inherited."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGHUP, before)


def read_log(folder: Path) -> dict[int, list[tuple[int, int, int]]]:
    """What the programs say they did."""
    found = {}
    for place in folder.glob("log.*"):
        lines = place.read_text().splitlines()
        found[int(place.name.split(".")[1])] = [
            tuple(map(int, line.split()))
            for line in lines
            if line.count(" ") == 2  # type: ignore[misc]
        ]
    return found


def executions(process: ProcessSession, text: str | None = "work()") -> list[tuple[int, int, int]]:
    """Began, ended and thread of each recorded execution of the marks on a text, or of all."""
    open_now: dict[tuple[int, int], list[int]] = {}
    found = []
    records = process.records
    for now, thread, mark, opens in zip(records.time_ns, records.thread, records.mark, records.opens, strict=True):
        if text is not None and process.marks[mark].finding != text:
            continue
        if opens:
            open_now.setdefault((thread, mark), []).append(now)
        else:
            found.append((open_now[thread, mark].pop(), now, thread))
    assert not any(open_now.values())
    return sorted(found)


_TURN = 6e6  # ns: somewhat more than a thread waits for its turn (sys.getswitchinterval)


def check_record(both: Both, process: ProcessSession, least: int = 3) -> int:
    """Hold the record of ``work()`` calls against the program's own log, thread by thread.

    Each recorded execution holds exactly one of the log on the same thread, and each of the log that lies well inside a
    marks-only window is recorded; of marks recorded in some units only, each that lies well inside those. Where
    several threads work, one may lose its turn between its mark and its log while another one switches recording.
    Returns how many executions were compared; at least ``least``.
    """
    log = both.log[process.pid]
    recorded = executions(process)
    edge = 0.0 if len({entry[2] for entry in log}) == 1 else _TURN
    for began, ended, thread in recorded:
        inside = [entry for entry in log if entry[2] == thread and began <= entry[0] and entry[1] <= ended]
        assert len(inside) == 1, (began, ended, thread, inside)
    for window in process.windows:
        if window.kind is not WindowKind.MARKS:
            continue
        spans = next(
            (found for mark, found in process.thinned.items() if process.marks[mark].finding == "work()"), None
        )
        expected = [
            e
            for e in log
            if _well_inside(e, (window.start_ns, window.end_ns))
            and (spans is None or any(_well_inside(e, span, edge) for span in spans))
        ]
        covered = [e for e in expected if any(r[2] == e[2] and r[0] <= e[0] and e[1] <= r[1] for r in recorded)]
        assert covered == expected
    assert len(recorded) >= least
    return len(recorded)


def _well_inside(entry: tuple[int, int, int], span: tuple[int, int], margin: float = 2e6) -> bool:
    return span[0] + margin < entry[0] and entry[1] + margin < span[1]


def wait_for(condition: Callable[[], object], seconds: float = 120.0) -> None:
    """Until something holds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.02)


def busy(folder: Path, lines: int = 5) -> bool:
    """Whether the program of a run has done some work."""
    return sum(len(entries) for entries in read_log(folder).values()) >= lines


def going(folder: Path, end: float, kind: str = "marks") -> bool:
    """Whether those who drive a run go on: until ``end``, by the monotonic clock, and in the run with us until some
    process that is measured has held a window of this kind; a minute longer at most."""
    now = time.monotonic()
    if now < end or now > end + 60:
        return now < end
    states = [json.loads(place.read_text()) for place in (folder / "session").glob("p*.*/process.json")]
    measured = [state for state in states if state.get("phase") in ("warm-up", "windows")]
    held = any(window["kind"] == kind and window["complete"] for state in states for window in state["windows"])
    return bool(measured) and not held


def get(folder: Path, path: str, timeout: float = 10.0) -> tuple[int, bytes]:
    """Ask the server of a run."""
    connection = http.client.HTTPConnection("127.0.0.1", int((folder / "port").read_text()), timeout=timeout)
    try:
        connection.request("GET", path)
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def up(folder: Path) -> bool:
    """Whether the server of a run accepts."""
    try:
        get(folder, "/health")
    except OSError:
        return False
    return True


def no_faults(process: ProcessSession) -> bool:
    """Whether nothing of ours went wrong. What a slow machine leaves undone is told there too, and is no fault."""
    return not any(re.search(r": \w*(Error|Exception|Exit|Interrupt): ", f"{error} ") for error in process.errors)


def kinds(process: ProcessSession) -> list[str]:
    """The kinds of the windows, in order."""
    return [window.kind.value for window in process.windows]
