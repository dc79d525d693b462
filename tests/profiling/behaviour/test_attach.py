"""A program started once with a dormant agent, profiled again and again while it runs."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from harness import LOG, Both, Ran, check_record, kinds, read_log, wait_for

from awp_lint.detector.profiling.session import Session

# what a program needs of torch for the agent to wake is that it imports it
TORCH = "version = 'none'\n"

LOOPS = """
import sys, threading, time, torch
def step():
    work()
def forever():
    while True:
        step()
def requests():
    while True:
        for n in range(5):
            work()
thread = threading.Thread(target=forever, daemon=True)
thread.start()
print("up", flush=True)
try:
    while True:
        requests_of_one = 0
        for n in range(5):
            step()
except KeyboardInterrupt:
    print("down", threading.active_count(), [type(f).__name__ for f in sys.meta_path if "Torch" in type(f).__name__])
    sys.exit(3)
"""


class Running:
    """A program under ``awp-lint --agent``."""

    def __init__(self, folder: Path, text: str) -> None:
        self.folder = folder
        self.program = folder / "program.py"
        self.program.write_text(LOG + text, encoding="utf-8")
        (folder / "torch").mkdir(exist_ok=True)
        (folder / "torch" / "__init__.py").write_text(TORCH)
        self.runtime = folder / "runtime"
        self.runtime.mkdir(mode=0o700)
        self.env = {**os.environ, "LOG": str(folder), "XDG_RUNTIME_DIR": str(self.runtime)}
        with open(folder / "stdout", "wb") as out, open(folder / "stderr", "wb") as err:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "awp_lint", "--agent", sys.executable, str(self.program)],
                stdout=out,
                stderr=err,
                env=self.env,
                cwd=folder,
            )
        self.jobs = 0

    def attach(self, *wanted: tuple[str, str, str | None], target: str = "", **options: object) -> Session | str:
        """A session, or what the tool said instead."""
        self.jobs += 1
        job, result = self.folder / f"job{self.jobs}.json", self.folder / f"session{self.jobs}.pickle"
        job.write_text(
            json.dumps(
                {
                    "program": str(self.program),
                    "wanted": wanted or [("call", "work()", None)],
                    "target": target or str(self.process.pid),
                    "options": options,
                    "result": str(result),
                }
            )
        )
        driver = Path(__file__).with_name("attach_driver.py")
        command = [sys.executable, str(driver), str(job)]
        done = subprocess.run(command, env=self.env, capture_output=True, text=True, timeout=60, check=False)
        if done.returncode == 2:
            return done.stdout.strip()
        assert done.returncode == 0, done.stderr
        session: Session = pickle.loads(result.read_bytes())
        return session

    def both(self, session: Session) -> Both:
        """For comparing a record with the program's log."""
        return Both(Ran(0, "", ""), Ran(0, "", ""), session, [], read_log(self.folder))


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    program = Running(tmp_path, LOOPS)
    try:
        wait_for(lambda: (tmp_path / "stdout").read_text() == "up\n")
        yield program
    finally:
        program.process.kill()
        program.process.wait()


def test_profiled_twice_without_a_restart(running: Running) -> None:
    sessions = []
    for wanted in ([("call", "work()", None)], [("call", "work()", None), ("call", "step()", None)]):
        session = running.attach(*wanted, duration=2)
        assert isinstance(session, Session), session
        (process,) = session.processes
        assert process.pid == running.process.pid and process.clean_exit
        assert "marks" in kinds(process)
        check_record(running.both(session), process)
        sessions.append(session)
    assert {p.finding for p in sessions[1].processes[0].marks} == {"work()", "step()"}
    running.process.send_signal(signal.SIGINT)
    assert running.process.wait(20) == 3
    assert (running.folder / "stdout").read_text() == "up\ndown 2 []\n"
    assert (running.folder / "stderr").read_text() == ""


def test_what_is_said_where_there_is_nothing_to_profile(running: Running) -> None:
    assert running.attach(target="1") == "--attach 1: not started by awp-lint --agent"
    assert "takes the id" in str(running.attach(target="nonsense"))
    running.process.kill()
    running.process.wait()
    assert "no process of it that has imported torch answers" in str(running.attach())


def test_one_who_asks_and_dies_leaves_nothing(running: Running) -> None:
    control = running.runtime / "awp-lint" / "agents" / str(running.process.pid)
    job = running.folder / "job.json"
    job.write_text(
        json.dumps(
            {
                "program": str(running.program),
                "wanted": [("call", "work()", None)],
                "target": str(running.process.pid),
                "options": {"duration": 60},
                "result": str(running.folder / "never"),
            }
        )
    )
    asking = subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("attach_driver.py")), str(job)], env=running.env
    )
    wait_for(lambda: list(control.glob("runs/1/p*/process.json")))
    second = running.attach(duration=1)
    assert second == "this program is being profiled by somebody else already"
    asking.kill()
    asking.wait()
    wait_for(lambda: list(control.glob("runs/1/p*/ended")))
    time.sleep(0.2)
    session = running.attach(duration=2)
    assert isinstance(session, Session)
    check_record(running.both(session), session.processes[0])


SELDOM = """
import time
import torch

model = torch.nn.Linear(4, 4)
print("up", flush=True)
with torch.inference_mode():
    while True:
        model(torch.ones(4))
        time.sleep(0.2)
"""


@pytest.mark.torch
def test_a_program_without_a_mark_whose_modules_run_in_no_time(tmp_path: Path) -> None:
    """Nothing of it passes by where marks are compiled in, and no look at its threads meets a module's call."""
    pytest.importorskip("torch")
    program, report = tmp_path / "seldom.py", tmp_path / "report.json"
    program.write_text(SELDOM, encoding="utf-8")
    (tmp_path / "runtime").mkdir(mode=0o700)
    env = {**os.environ, "XDG_RUNTIME_DIR": str(tmp_path / "runtime")}
    tool = [sys.executable, "-m", "awp_lint"]
    with subprocess.Popen([*tool, "--agent", sys.executable, str(program)], stdout=subprocess.PIPE, env=env) as serving:
        try:
            assert serving.stdout is not None
            assert serving.stdout.readline() == b"up\n"
            attach = [str(program), "--isolated", "--format", "json", "--output", str(report)]
            attach += ["--attach", str(serving.pid), "--duration", "2"]
            done = subprocess.run([*tool, *attach], env=env, capture_output=True, timeout=90, check=False)
        finally:
            serving.terminate()
    assert done.returncode == 0, done.stderr
    profile = json.loads(report.read_text(encoding="utf-8"))["profile"]
    assert profile["unit"] == "run"
    assert profile["unit_ms"] > 0
