"""Programs without torch: output, exit code and record, with and without us."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from harness import Program, busy, check_record, executions, going, kinds, read_log, run_both, wait_for

from awp_lint.detector.profiling.ready import port_accepts

CALL = ("call", "work()", None)
# Long enough for a first round of windows: warm-up, baseline, marks, baseline.
SPAN = "import time\nend = until({seconds})\n"


def looping(body: str, seconds: float = 2.0) -> str:
    return SPAN.format(seconds=seconds) + body


def test_everything_a_program_sees_of_itself(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        """
import sys, threading, signal, os, gc
import __main__
work()
print(sys.argv, sys.orig_argv[1:], __name__, __file__, __doc__, __spec__, __package__, sorted(vars(__main__)))
print([entry for entry in sys.path], sys.flags, sys.stdin.read())
print(threading.enumerate(), threading.active_count(), signal.getsignal(2), signal.getsignal(15), os.getcwd())
print(type(__loader__).__name__, sys.gettrace(), sys.getprofile(), sys.getswitchinterval(), gc.get_threshold())
print(sys.excepthook is sys.__excepthook__, sys.warnoptions, os.getsid(0) == os.getpgid(0), sys.stdin.isatty())
""",
    )
    both = run_both(program, [sys.executable, "program.py", "--profile", "a b", ""], stdin=b"some input")
    both.same(r"started \d+")


@pytest.mark.parametrize(
    "ending",
    [
        "import sys; sys.exit(3)",
        "raise SystemExit('a message')",
        "def f():\n    try:\n        {}[1]\n    except KeyError as e:\n        raise ValueError('two') from e\nf()",
        "import os; print('flushed', flush=True); os._exit(9)",
        "import os; os.kill(os.getpid(), 9)",
        "import os; os.abort()",
        "class E(BaseException): pass\nraise E",
        "import atexit; atexit.register(print, 'bye'); import sys; sys.stdout.write('no newline')",
    ],
)
def test_endings(tmp_path: Path, ending: str) -> None:
    both = run_both(Program(tmp_path, "for i in range(3):\n    work()\n" + ending))
    both.same()
    assert both.process().reached


def test_a_loop_in_main(tmp_path: Path) -> None:
    text = looping("print('begin')\nwhile time.monotonic() < end:\n    work()\nprint('end')")
    both = run_both(Program(tmp_path, text, [CALL, ("loop", "while time", "step")]))
    both.same()
    process = both.process()
    assert kinds(process)[:3] == ["baseline", "marks", "baseline"]
    check_record(both, process)


THREADS = """
import threading
def run():
    while time.monotonic() < end:
        work()
threads = [threading.Thread(target=run) for _ in range(3)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("joined", threading.active_count())
"""


def test_threads_and_a_main_thread_in_a_join(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, looping(THREADS)))
    both.same()
    process = both.process()
    check_record(both, process)
    assert len(set(process.records.thread)) == 3


ASYNC = """
import asyncio
async def task(n):
    while time.monotonic() < end:
        got = [work(), await asyncio.sleep(0.002, n)]
        assert got[1] == n
async def main():
    await asyncio.gather(task(1), task(2))
asyncio.run(main())
print("done")
"""


def test_two_concurrent_tasks_in_one_function(tmp_path: Path) -> None:
    program = Program(tmp_path, looping(ASYNC), [("statement", "got = [work(), await asyncio.sleep(0.002, n)]", None)])
    both = run_both(program)
    both.same()
    process = both.process()
    log = both.log[process.pid]
    # while one task waits in its statement the other one's work is not charged to it: no execution holds two works
    held = [sum(b <= w[0] and w[1] <= e for w in log) for b, e, _ in executions(process, None)]
    assert max(held) == 1 and held.count(1) >= 3


STREAM = """
def stream(n):
    for i in range(n):
        yield work()
def consume():
    total = 0
    for part in stream(5):
        time.sleep(0.003)
        total += part
    return total
while time.monotonic() < end:
    consume()
    next(stream(3))
print("done")
"""


def test_generators_that_stream(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, looping(STREAM)))
    both.same()
    check_record(both, both.process())


RAISES = """
def fails(n):
    work()
    raise ValueError(n)
def handler(n):
    try:
        value = fails(n)
    except ValueError as error:
        return error.args[0]
count = 0
while time.monotonic() < end:
    count += handler(1)
    work()
print("done")
"""


def test_exceptions_through_a_mark(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, looping(RAISES), [CALL, ("call", "fails(n)", None)]))
    both.same()
    process = both.process()
    assert {process.marks[m].finding for m in process.reached} == {"work()", "fails(n)"}
    check_record(both, process)


def test_warnings_are_errors(tmp_path: Path) -> None:
    program = Program(
        tmp_path, looping("import warnings\nwhile time.monotonic() < end:\n    work()\nprint(warnings.filters)")
    )
    both = run_both(program, [sys.executable, "-W", "error", "-X", "dev", str(program.path)])
    both.same()
    check_record(both, both.process())


FORK = """
import os, warnings
warnings.simplefilter("error")
pids = []
def child():
    while time.monotonic() < end:
        work()
    os._exit(4)
for _ in range(50): work()
for _ in range(2):
    pid = os.fork()
    if pid == 0:
        child()
    pids.append(pid)
while time.monotonic() < end:
    work()
print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
"""


def test_fork(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, looping(FORK)))
    both.same()
    workers = both.workers()
    assert len(workers) == 3
    for process in workers:
        check_record(both, process)
    assert sorted(p.parent_pid == workers[0].pid for p in workers) == [False, True, True]


def test_fork_while_windows_are_open(tmp_path: Path) -> None:
    text = looping(
        "import os, warnings\nwarnings.simplefilter('error')\nstatuses = []\n"
        "def child():\n    for _ in range(5): work()\n    os._exit(4)\n"
        "while time.monotonic() < end:\n    work()\n    if len(statuses) < 100:\n"
        "        pid = os.fork()\n        if pid == 0: child()\n"
        "        statuses.append(os.waitpid(pid, 0)[1] >> 8)\n"
        "print(set(statuses))",
        seconds=6.0,  # a hundred forks take half of it
    )
    both = run_both(Program(tmp_path, text))
    both.same()
    assert both.ours.stdout == "{4}\n"
    assert len(both.workers()) >= 3
    check_record(both, both.workers()[0])


POOL = """
import multiprocessing, time
def task(n):
    end = until(1.8)
    while time.monotonic() < end:
        work()
    return n * n
if __name__ == "__main__":
    with multiprocessing.get_context({method!r}).Pool(2) as pool:
        print(pool.map(task, [2, 3], chunksize=1))
"""


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_multiprocessing_workers(tmp_path: Path, method: str) -> None:
    both = run_both(Program(tmp_path, POOL.format(method=method)))
    both.same()
    workers = both.workers()
    assert len(workers) == 2
    for process in workers:
        assert "marks" in kinds(process)
        check_record(both, process)


ENGINE = """
import multiprocessing, time
def engine(pipe):
    for size in range(20):  # captures its graphs
        work()
    pipe.send("ready")
    end = until(2.5)
    while (request := pipe.recv()) is not None:
        for step in range(request):
            work()
        pipe.send(not time.monotonic() < end)
if __name__ == "__main__":
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=engine, args=(theirs,), daemon=True)
    process.start()
    print(ours.recv())
    held = []
    while not held:
        ours.send(10)
        held = ours.recv()
    ours.send(None)
    process.join()
    print(process.exitcode)
"""


def test_an_engine_in_a_child(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, ENGINE, [CALL, ("loop", "for step in", "step")]))
    both.same()
    (engine,) = both.workers()
    assert "marks" in kinds(engine) and engine.clean_exit
    check_record(both, engine)


PREFORK = """
import os, signal, socket, sys, time
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
def worker():
    signal.signal(signal.SIGTERM, lambda *a: sys.exit(0))
    while True:
        connection, _ = server.accept()
        with connection:
            connection.recv(1000)
            work()
            connection.sendall(b"%d" % os.getpid())
def main():
    pids = []
    for _ in range(2):
        pid = os.fork()
        if pid == 0:
            worker()
        pids.append(pid)
    def stop(*a):
        for pid in pids: os.kill(pid, signal.SIGTERM)
        print([os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in pids])
        sys.exit(0)
    signal.signal(signal.SIGTERM, stop)
    while True: signal.pause()
main()
"""


def test_preforked_workers(tmp_path: Path) -> None:
    def drive(process: subprocess.Popen[bytes], folder: Path) -> None:
        port = int((folder / "port").read_text())
        wait_for(lambda: port_accepts("127.0.0.1", port))
        end = time.monotonic() + 2.5
        seen = set()
        while going(folder, end):
            with socket.create_connection(("127.0.0.1", port)) as connection:
                connection.sendall(b"x")
                seen.add(connection.recv(100))
        process.send_signal(signal.SIGTERM)

    both = run_both(Program(tmp_path, PREFORK), [sys.executable, "program.py", "PORT"], drive=drive)
    both.same()
    assert both.ours.code == 0 and both.ours.stdout == "[0, 0]\n"
    assert 1 <= len(both.workers()) <= 2
    for process in both.workers():
        assert process.clean_exit
        check_record(both, process)


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (signal.SIGINT, "while True:\n    work()"),
        (signal.SIGTERM, "while True:\n    work()"),
        (signal.SIGHUP, "while True:\n    work()"),
        (
            signal.SIGINT,
            "try:\n    while True: work()\nexcept KeyboardInterrupt:\n    print('stopped'); raise SystemExit(5)",
        ),
        (
            signal.SIGTERM,
            "import signal, sys\nsignal.signal(15, lambda *a: (print('got it'), sys.exit(6)))\nwhile True:\n    work()",
        ),
    ],
    ids=["INT", "TERM", "HUP", "INT handled", "TERM handled"],
)
def test_signals_to_us_are_signals_to_the_program(tmp_path: Path, number: int, text: str) -> None:
    def drive(process: subprocess.Popen[bytes], folder: Path) -> None:
        wait_for(lambda: busy(folder, 50))
        process.send_signal(number)

    both = run_both(Program(tmp_path, text), drive=drive)
    both.same(r'File "[^"]*", line \d+.*\n.*\n(.*\^.*\n)?')
    assert both.process().reached


def test_sigkill_in_the_middle_of_a_window(tmp_path: Path) -> None:
    def drive(process: subprocess.Popen[bytes], folder: Path) -> None:
        wait_for(lambda: busy(folder))
        time.sleep(1.2)
        os.kill(next(iter(read_log(folder))), signal.SIGKILL)

    both = run_both(Program(tmp_path, "while True:\n    work()"), drive=drive)
    both.same()
    process = both.process()
    assert both.session.exit_code == -signal.SIGKILL and not process.clean_exit
    assert process.reached
    check_record(both, process, 0)


COMMANDS = {
    "-m": [sys.executable, "-m", "program", "x"],
    "-c": [sys.executable, "-c", "import program, sys; print(sys.argv)", "y"],
    "shell": ["sh", "-c", f"{sys.executable} program.py one && echo between; {sys.executable} program.py two; exit 7"],
    "pipe": ["sh", "-c", f"{sys.executable} program.py one | cat"],
    "env": ["env", "A=1", sys.executable, "program.py"],
    "stdin": [sys.executable, "-"],
}


@pytest.mark.parametrize("way", COMMANDS)
def test_ways_to_start(tmp_path: Path, way: str) -> None:
    program = Program(tmp_path, "import sys\nfor _ in range(5): work()\nprint(__name__, sys.argv, sys.path[0])\n")
    both = run_both(program, COMMANDS[way], stdin=b"import program, sys\nprint(sys.argv)")
    both.same()
    workers = both.workers()
    assert len(workers) == (2 if way == "shell" else 1)


@pytest.mark.parametrize("flag", ["-I", "-E", "-S"])
def test_flags_that_keep_us_out(tmp_path: Path, flag: str) -> None:
    program = Program(tmp_path, "work()\nprint('fine')")
    both = run_both(program, [sys.executable, flag, str(program.path)])
    both.same()
    assert both.session.processes == ()
    assert both.session.notes == (f"nothing was profiled: Python's {flag} keeps the agent out",)


def test_a_program_that_is_no_python(tmp_path: Path) -> None:
    program = Program(tmp_path, "work()")
    both = run_both(program, ["sh", "-c", "echo hello; exit 5"])
    both.same()
    assert len(both.session.notes) == 1 and "no Python" in both.session.notes[0]


def test_a_program_that_cannot_be_compiled(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, "work()\n1 +", wanted=()))
    both.same()


def test_no_marked_line_runs(tmp_path: Path) -> None:
    both = run_both(Program(tmp_path, "def never():\n    work()\nprint('hi')"))
    both.same()
    assert both.workers() == []
