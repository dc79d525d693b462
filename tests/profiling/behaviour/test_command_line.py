"""The whole tool on a program, by its command line: streams, exit codes, the report; then the same by --attach."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from harness import wait_for

# enough of torch to run, and to be taken for it by the static half
TORCH = """
import time
class inference_mode:
    def __call__(self, f): return f
class Tensor:
    def argmax(self, dim=-1): return self
    def item(self): time.sleep(0.001); return 1
class nn:
    class Linear:
        def __init__(self, a, b): pass
        def eval(self): return self
        def to(self, device): return self
        def __call__(self, x): return x
def ones(*sizes, device=None): return Tensor()
"""
APP = """
import sys, time, torch
model = torch.nn.Linear(16, 16).eval().to("cuda")

@torch.inference_mode()
def generate(x, n):
    tokens = []
    for _ in range(n):
        logits = model(x)
        tokens.append(logits.argmax(-1).item())
    return tokens

def main(seconds):
    print("up", flush=True)
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        generate(torch.ones(1, 16, device="cuda"), 10)
    print("done")
    sys.exit(3)

main(float(sys.argv[1]))
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "lib" / "torch").mkdir(parents=True)
    (tmp_path / "lib" / "torch" / "__init__.py").write_text(TORCH)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    (folder / "runtime").mkdir(mode=0o700, exist_ok=True)
    extra = {"PYTHONPATH": str(folder / "lib"), "XDG_RUNTIME_DIR": str(folder / "runtime")}
    return {**os.environ, **extra}


def awp(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "awp_lint", "--no-cache", "--isolated", *words]
    return subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=120, check=False
    )


def evidence(report: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    return {f["rule"]: f["evidence"] for f in report["findings"]}


def test_report_and_program_keep_to_their_streams(folder: Path) -> None:
    line = ["app.py", "--confidence", "low", "--profile", sys.executable, "app.py", "2.5"]
    done = awp(folder, *line)
    assert done.stdout == "up\ndone\n"
    assert "app.py:10" in done.stderr
    assert done.returncode in (0, 1)

    done = awp(folder, "--propagate-exit", "--format", "json", "--output", "report.json", *line)
    assert (done.returncode, done.stdout) == (3, "up\ndone\n")
    report = json.loads((folder / "report.json").read_text())
    assert report["profile"]["exit_code"] == 3 and report["profile"]["load"] is None
    found = evidence(report)
    assert "AWP101" in found
    assert found["AWP101"]["calls"] > 5


def test_a_running_program_by_attach(folder: Path) -> None:
    with open(folder / "out", "wb") as out:
        program = subprocess.Popen(
            [sys.executable, "-m", "awp_lint", "--agent", sys.executable, "app.py", "900"],
            cwd=folder,
            env=environment(folder),
            stdout=out,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for(lambda: (folder / "out").read_text() == "up\n")
        for _ in range(2):
            done = awp(folder, "app.py", "--confidence", "low", "--format", "json", "--duration", "2", "--attach",
                       str(program.pid))  # fmt: skip
            assert done.returncode in (0, 1) and "Traceback" not in done.stderr, done.stderr
            assert evidence(json.loads(done.stdout))["AWP101"]["calls"] > 5
        program.send_signal(signal.SIGTERM)
        assert program.wait(20) == -signal.SIGTERM
        assert (folder / "out").read_text() == "up\n"
    finally:
        program.kill()
        program.wait()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--profile", "no-such-command"], "cannot start no-such-command: command not found"),
        (["--attach", "999999999"], "--attach 999999999: not started by awp-lint --agent; there is no such process"),
        (["--load-url", "localhost:80", "--profile", "true"], "--load-url takes a URL"),
        (["--load-url", "http://localhost:1", "--load-body", "{", "--profile", "true"], "--load-body: not JSON"),
        (["--ready-url", "ftp://x", "--profile", "true"], "--ready-url takes a URL"),
        (["--agent", "true"], "--agent only starts the command"),
    ],
)
def test_wrong_use_is_one_line(folder: Path, words: list[str], said: str) -> None:
    done = awp(folder, *words)
    assert done.returncode == 2 and done.stdout == ""
    assert said in done.stderr and done.stderr.count("\n") == 1


def test_the_dormant_agent_changes_nothing(folder: Path) -> None:
    command = [sys.executable, "-m", "awp_lint", "--agent", sys.executable, "app.py", "0.1"]
    done = subprocess.run(
        command, cwd=folder, env=environment(folder), capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (3, "up\ndone\n", "")
    done = subprocess.run(
        [sys.executable, "-m", "awp_lint", "--agent", "no-such-command"],
        env=environment(folder),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "awp-lint: cannot start no-such-command: command not found\n"
