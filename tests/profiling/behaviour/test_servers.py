"""Web servers with sync, async and streaming handlers, with and without us."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness import Both, Program, check_record, get, going, kinds, run_both, up, wait_for

from awp_lint.detector.profiling.reader import NO_TORCH

pytest.importorskip("fastapi")
pytest.importorskip("uvicorn")

APP = """
import asyncio
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
app = FastAPI()
@app.get("/health")
def health():
    return "ok"
@app.get("/sync")
def sync():
    return sum(work() for _ in range(3))
@app.get("/async")
async def asynchronous():
    return [work(), await asyncio.sleep(0.002, 7), work()]
@app.get("/stream")
async def stream():
    async def parts():
        for n in range(3):
            yield b"%d" % work()
            await asyncio.sleep(0.001)
    return StreamingResponse(parts())
@app.get("/fails")
def fails():
    raise ValueError(work())
"""
ANSWERS = {"/sync": (200, b"3.0"), "/async": (200, b"[1.0,7,1.0]"), "/stream": (200, b"111"), "/fails": (500, None)}


def ask(folder: Path, seconds: float) -> None:
    """Two clients, all routes, right answers."""
    end = time.monotonic() + seconds
    wrong: list[object] = []

    def client(paths: list[str]) -> None:
        while going(folder, end):
            for path in paths:
                status, body = get(folder, path)
                if (status, body) != ANSWERS[path] and (status, None) != ANSWERS[path]:
                    wrong.append((path, status, body))

    clients = [threading.Thread(target=client, args=(paths,)) for paths in (["/sync", "/fails"], ["/async", "/stream"])]
    for thread in clients:
        thread.start()
    for thread in clients:
        thread.join()
    assert not wrong


def served(process: subprocess.Popen[bytes], folder: Path) -> None:
    wait_for(lambda: up(folder))
    ask(folder, 2.0)
    process.send_signal(signal.SIGINT)


def same_log(both: Both) -> None:
    """The servers logged the same kinds of lines; how many requests there were is the clients' affair."""
    seen = []
    for ran in (both.plain, both.ours):
        told = (re.sub(r"\d+", "N", line) for line in ran.stderr.splitlines() if line[:4] in ("INFO", "WARN", "ERRO"))
        seen.append(sorted(set(told)))
    assert seen[0] == seen[1]
    assert (both.ours.code, both.ours.stdout) == (both.plain.code, both.plain.stdout)


def test_uvicorn_with_sync_async_and_streaming_handlers(tmp_path: Path) -> None:
    program = Program(tmp_path, APP)
    command = [sys.executable, "-m", "uvicorn", "program:app", "--port", "PORT", "--log-level", "warning"]
    both = run_both(program, command, drive=served)
    same_log(both)
    assert set(both.ours.stderr.splitlines()) >= {"ValueError: 1.0"}
    process = both.process()
    assert process.clean_exit and "marks" in kinds(process)
    assert len(process.reached) == 5
    assert check_record(both, process, 3)


def test_uvicorn_with_reload(tmp_path: Path) -> None:
    """The supervisor does no work, the child that it spawns does all."""
    script = Path(sys.executable).with_name("uvicorn")
    command = [str(script), "program:app", "--port", "PORT", "--reload", "--no-access-log"]
    both = run_both(Program(tmp_path, APP), command, drive=served)
    same_log(both)
    (worker,) = both.workers()
    assert len(both.session.processes) >= 2
    assert check_record(both, worker, 3)


def test_load_and_stop_of_a_server_by_options(tmp_path: Path) -> None:
    """Readiness by URL, our own load, and the stop when all windows are done: nobody outside is needed."""
    with_port = Program(
        tmp_path,
        APP + "\nif __name__ == '__main__':\n    import sys, uvicorn\n    uvicorn.run(app, "
        "port=int(sys.argv[1]), log_level='warning')\n",
    )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]

    def drive(process: subprocess.Popen[bytes], folder: Path) -> None:
        if folder.name.startswith("plain"):
            process.kill()  # it would wait for a load for ever

    both = run_both(
        with_port,
        [sys.executable, "program.py", str(port)],
        drive=drive,
        options={
            "ready_url": f"http://127.0.0.1:{port}/health",
            "load_url": f"http://127.0.0.1:{port}/sync",
            "rate": 40,
            "duration": 3,
        },
    )
    session = both.session
    assert session.stopped and session.load is not None
    assert session.load["answered"] > 3 and session.load["errors"] == {} and session.load["unfinished"] == 0
    assert session.load["answered"] * 3 == sum(map(len, both.log.values()))
    assert both.ours.code == 0 or both.session.exit_code == -signal.SIGINT
    assert session.notes == (NO_TORCH,)
    process = both.process()
    assert process.clean_exit and check_record(both, process, 3)
