"""Ctrl-C typed at a terminal: the program gets it once, as it would without us."""

from __future__ import annotations

import json
import os
import pickle
import pty
import select
import sys
import time
from pathlib import Path

import pytest
from harness import Program

COUNTS = """
import signal, sys, time
count = []
signal.signal(signal.SIGINT, lambda *a: count.append(1))
print("ready", sys.stdin.isatty(), flush=True)
while not count:
    work()
time.sleep(0.7)
sys.exit(40 + len(count))
"""


@pytest.mark.parametrize("shell", [False, True], ids=["python", "shell"])
def test_ctrl_c(tmp_path: Path, shell: bool) -> None:
    program = Program(tmp_path, COUNTS)
    command = [sys.executable, str(program.path)]
    if shell:
        command = ["sh", "-c", f"trap : INT; {sys.executable} {program.path}; exit $?"]
    job, result = tmp_path / "job.json", tmp_path / "session"
    job.write_text(
        json.dumps(
            {
                "program": str(program.path),
                "wanted": [("call", "work()", None)],
                "command": command,
                "options": {"directory": str(tmp_path / "run")},
                "result": str(result),
            }
        )
    )
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ["LOG"] = str(tmp_path)
        os.execv(sys.executable, [sys.executable, str(Path(__file__).with_name("driver.py")), str(job)])
    shown = b""
    typed = False
    end = time.monotonic() + 60
    while time.monotonic() < end:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                shown += os.read(terminal, 10_000)
            except OSError:  # the other side is closed
                break
        if b"ready True" in shown and not typed:
            typed = True
            time.sleep(0.3)
            os.write(terminal, b"\x03")
    _, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert os.waitstatus_to_exitcode(status) == 41, shown
    session, _ = pickle.loads(result.read_bytes())
    assert session.exit_code == 41 and session.stopped == "interrupted"
    assert any(process.reached for process in session.processes)
