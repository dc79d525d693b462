"""Readiness, the load command, signals and the stop, with programs that play the agent's part by writing its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from awp_lint.detector.profiling import ready, stopping
from awp_lint.detector.profiling.load import CommandLoad
from awp_lint.detector.profiling.supervise import Care, Outcome, Supervisor

# What a program with an agent would leave: a folder for its process with the phase of its schedule.
AGENT = """
import json, os, pathlib, signal, socket, sys, time
def phase(name):
    place = pathlib.Path(sys.argv[1]) / f"p{os.getpid()}.1"
    place.mkdir(exist_ok=True)
    (place / "born").write_bytes(b"x")
    part = place / "process.tmp"
    part.write_text(json.dumps({"pid": os.getpid(), "phase": name}))
    part.replace(place / "process.json")
def listen():
    server = socket.create_server(("127.0.0.1", 0))
    (pathlib.Path(sys.argv[1]) / "port").write_text(str(server.getsockname()[1]))
    return server
def await_close():
    while not os.path.exists(os.path.join(sys.argv[1], "close")):
        time.sleep(0.01)
    phase("closed")
"""


def start(tmp_path: Path, text: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", AGENT + text, str(tmp_path)])


def follow(tmp_path: Path, text: str, said: list[str] | None = None, **care: object) -> Outcome:
    process = start(tmp_path, text)
    try:
        say = (lambda line: None) if said is None else said.append
        return Supervisor(process, tmp_path, Care(say=say, **care), []).follow()  # type: ignore[arg-type]
    finally:
        process.kill()
        process.wait()


def test_a_program_that_ends_is_only_followed(tmp_path: Path) -> None:
    outcome = follow(tmp_path, "phase('windows'); time.sleep(0.3); sys.exit(3)", duration=20)
    assert outcome == Outcome(exit_code=3)


def test_a_program_is_stopped_after_the_duration_that_was_given(tmp_path: Path) -> None:
    outcome = follow(
        tmp_path,
        "phase('windows')\ntry:\n  await_close(); time.sleep(30)\nexcept KeyboardInterrupt:\n  sys.exit(7)",
        duration=0.3,
    )
    assert outcome.exit_code == 7
    assert outcome.stopped == "its 0.3 s are over" and outcome.notes == []


def test_a_program_without_work_is_stopped_after_max_wait(tmp_path: Path) -> None:
    outcome = follow(tmp_path, "time.sleep(30)", max_wait=0.3)
    assert outcome.exit_code == -signal.SIGINT
    assert outcome.notes == ["no accelerator or marked work within 0.3 s"]


def test_without_a_port_or_a_duration_a_program_gets_more_time_to_end(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awp_lint.detector.profiling.supervise.DURATION", 0.2)
    said: list[str] = []
    outcome = follow(tmp_path, "phase('done'); time.sleep(1.5); sys.exit(4)", said)
    assert outcome == Outcome(exit_code=4)
    assert len(said) == 1 and "still runs" in said[0]


def test_a_program_with_a_port_is_stopped_after_the_default_duration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("awp_lint.detector.profiling.supervise.DURATION", 0.3)
    outcome = follow(tmp_path, "phase('done'); s = listen(); time.sleep(30)")
    assert outcome.exit_code == -signal.SIGINT and outcome.stopped == "its 0.3 s are over"


def test_load_begins_when_ready_and_its_end_ends_the_run(tmp_path: Path) -> None:
    order = tmp_path / "order"
    load = CommandLoad(f"echo load >> {order}; sleep 0.3; echo 'in the background' >> {order} &")
    outcome = follow(
        tmp_path,
        f"time.sleep(0.5); open({str(order)!r}, 'a').write('ready\\n'); s = listen(); phase('windows'); await_close()\n"
        "time.sleep(30)",
        load=load,
    )
    assert order.read_text().splitlines() == ["ready", "load", "in the background"]
    assert outcome.stopped == "the load has ended"
    assert outcome.load is not None and outcome.load["exit_code"] == 0


def test_a_server_is_stopped_when_all_windows_are_done(tmp_path: Path) -> None:
    load = CommandLoad("sleep 60")
    outcome = follow(
        tmp_path, "s = listen(); phase('windows'); time.sleep(0.3); phase('done'); time.sleep(30)", load=load
    )
    assert outcome.stopped == "all windows are done"
    assert outcome.load is not None and outcome.load["exit_code"] is None
    assert load.process is not None and load.process.poll() is not None


def test_a_failing_load_is_named(tmp_path: Path) -> None:
    outcome = follow(tmp_path, "s = listen(); time.sleep(30)", load=CommandLoad("exit 9"))
    assert outcome.notes == ["the load ended with exit code 9: exit 9"]


def test_a_server_that_never_becomes_ready(tmp_path: Path) -> None:
    outcome = follow(tmp_path, "time.sleep(30)", ready_url="http://127.0.0.1:1/health", max_wait=0.3)
    assert outcome.notes == ["not ready: waited 0.3 s for http://127.0.0.1:1/health to answer"]
    assert outcome.exit_code == -signal.SIGINT


def test_sigterm_is_passed_on_and_nothing_more(tmp_path: Path) -> None:
    process = start(
        tmp_path,
        "signal.signal(15, lambda *a: (print('got', flush=True), time.sleep(0.3), sys.exit(5)))\n"
        "phase('windows'); await_close(); time.sleep(30)",
    )
    pending: list[int] = []
    threading.Timer(1.0, pending.append, (signal.SIGTERM,)).start()
    outcome = Supervisor(process, tmp_path, Care(), pending).follow()
    assert outcome.exit_code == 5 and outcome.stopped == ""


def test_sigint_to_us_ends_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stopping, "from_terminal", lambda: False)
    process = start(
        tmp_path,
        "phase('windows')\n"
        "try:\n  await_close(); time.sleep(30)\n"
        "except KeyboardInterrupt:\n  time.sleep(0.2); sys.exit(6)",
    )
    pending: list[int] = []
    threading.Timer(1.0, pending.append, (signal.SIGINT,)).start()
    outcome = Supervisor(process, tmp_path, Care(), pending).follow()
    assert outcome.exit_code == 6 and outcome.stopped == "interrupted"


SHORT = ((signal.SIGINT, 1.0), (signal.SIGTERM, 1.0), (signal.SIGKILL, 5.0))


def running(pid: int) -> bool:
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def spawn(tmp_path: Path, command: list[str], pids: int) -> tuple[subprocess.Popen[bytes], list[int]]:
    """Start a command whose Python processes write their pids to a file, and wait until all have."""
    process = subprocess.Popen(command)
    end = time.monotonic() + 20
    while len(found := list(tmp_path.glob("pid.*"))) < pids:
        assert time.monotonic() < end
        time.sleep(0.02)
    return process, [int(place.name.split(".")[1]) for place in found]


@pytest.fixture
def worker(tmp_path: Path) -> Callable[[str], str]:
    """A program that says that it runs, then does what it is told."""

    def write(text: str) -> str:
        path = tmp_path / "worker.py"
        path.write_text(
            "import os, pathlib, signal, sys, time\n"
            f"def here(): pathlib.Path({str(tmp_path)!r}, f'pid.{{os.getpid()}}').touch()\n" + text
        )
        return str(path)

    return write


def test_the_python_behind_a_shell_is_interrupted(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker("here()\ntry:\n  time.sleep(30)\nexcept KeyboardInterrupt:\n  sys.exit(7)")
    process, pids = spawn(tmp_path, ["sh", "-c", f"{sys.executable} {path}; exit $?"], 1)
    assert pids != [process.pid]
    assert stopping.stop(process, False, lambda: None, SHORT) == "SIGINT"
    assert not running(pids[0])


def test_what_ignores_sigint_behind_a_shell_gets_sigterm(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker("signal.signal(2, signal.SIG_IGN); here(); time.sleep(30)")
    process, pids = spawn(tmp_path, ["sh", "-c", f"{sys.executable} {path} & wait"], 1)
    assert stopping.stop(process, False, lambda: None, SHORT) == "SIGTERM"
    assert not running(pids[0])


def test_what_ignores_everything_is_killed_in_whatever_session(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker(
        "signal.signal(2, signal.SIG_IGN); signal.signal(15, signal.SIG_IGN)\n"
        "if os.fork() == 0: os.setsid()\n"
        "here(); time.sleep(30)"
    )
    process, pids = spawn(tmp_path, [sys.executable, path], 2)
    assert stopping.stop(process, False, lambda: None, SHORT) == "SIGKILL"
    deadline = time.monotonic() + 5
    while any(running(pid) for pid in pids) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not any(running(pid) for pid in pids)


def test_a_daemon_in_its_own_session_is_left_alone(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker("if os.fork() == 0: os.setsid()\nhere(); time.sleep(30)")
    process, pids = spawn(tmp_path, [sys.executable, path], 2)
    daemon = next(pid for pid in pids if pid != process.pid)
    try:
        assert stopping.stop(process, False, lambda: None, SHORT) == "SIGINT"
        assert running(daemon)
    finally:
        os.kill(daemon, signal.SIGKILL)


def test_workers_in_their_own_sessions_are_their_parents_to_stop(tmp_path: Path, worker: Callable[[str], str]) -> None:
    """As torchrun does it: workers in sessions of their own, which the parent signals."""
    path = worker(
        "import subprocess\n"
        "if len(sys.argv) > 1:\n"
        "  here()\n"
        "  try: time.sleep(30)\n"
        "  except KeyboardInterrupt: sys.exit(1)\n"
        "child = subprocess.Popen([sys.executable, __file__, 'w'], start_new_session=True)\n"
        "try: child.wait()\n"
        "except KeyboardInterrupt:\n"
        "  child.send_signal(2); sys.exit(child.wait() + 10)"
    )
    process, pids = spawn(tmp_path, [sys.executable, path], 1)
    assert stopping.stop(process, False, lambda: None, SHORT) == "SIGINT"
    assert process.returncode == 11 and not running(pids[0])


def test_an_interrupt_that_was_delivered_is_not_sent_again(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker(
        "count = []\nsignal.signal(2, lambda *a: count.append(1))\n"
        "signal.signal(15, lambda *a: sys.exit(20 + len(count)))\n"
        "here()\nwhile True: time.sleep(0.05)"
    )
    process, _ = spawn(tmp_path, [sys.executable, path], 1)
    process.send_signal(signal.SIGINT)
    assert stopping.stop(process, True, lambda: None, SHORT) == "SIGTERM"
    assert process.returncode == 21


def test_listening_is_seen_in_descendants(tmp_path: Path) -> None:
    process = start(tmp_path, "s = listen(); time.sleep(30)")
    try:
        end = time.monotonic() + 10
        while not ready.listens(process.pid):
            assert time.monotonic() < end
            time.sleep(0.05)
        assert ready.listens(os.getpid())
        assert ready.port_accepts("localhost", int((tmp_path / "port").read_text()))
    finally:
        process.kill()
        process.wait()
    assert not ready.listens(process.pid)


def test_the_load_command_is_ended_with_all_its_processes(tmp_path: Path, worker: Callable[[str], str]) -> None:
    path = worker("here(); time.sleep(30)")
    load = CommandLoad(f"{sys.executable} {path} & {sys.executable} {path}; wait")
    load.start()
    end = time.monotonic() + 20
    while len(found := list(tmp_path.glob("pid.*"))) < 2:
        assert time.monotonic() < end
        time.sleep(0.02)
    assert not load.ended()
    load.stop()
    assert load.ended() and load.note() is None
    assert not any(running(int(place.name.split(".")[1])) for place in found)
