"""Programs with torch on the CPU: traces, the program's own profiler, Dynamo, ranks, a health check under profiling."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest
from harness import Program, check_record, executions, get, going, kinds, no_faults, run_both, up, wait_for

pytest.importorskip("torch")
pytestmark = pytest.mark.torch

CALL = ("call", "work()", None)
MODEL = """
import sys, time, torch
torch.set_num_threads(1)
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(16, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)).eval()
x = torch.ones(2, 16)
def read(t):
    return t.item()
"""


# Kineto logs each profile that a program makes of itself; once our slices have run it is quiet.
KINETO = r"(?m)^[A-Z]+:\d{4}-\d\d-\d\d .*\.cpp:\d+\] .*\n"


def test_a_decode_loop_is_traced_then_makes_a_profile_of_its_own(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        MODEL
        + """
from torch.profiler import ProfilerActivity, profile
total = steps = 0
def decode(seconds):
    global total, steps
    end = until(seconds, "trace")
    while time.monotonic() < end:
        value = read(model(x).argmax())
        work()
        steps += 1
        total += value
with torch.inference_mode():
    decode(3.0)
    for turn in range(4):
        with profile(activities=[ProfilerActivity.CPU]) as own:
            for _ in range(10):
                model(x)
                work()
            time.sleep(0.3)
        print([e.count for e in own.key_averages() if e.key == "aten::linear"])
        decode(0.3)
print(total % steps, __import__("threading").active_count())
""",
        [CALL, ("loop", "while time.monotonic() < end:\n        value", "step"), ("call", "t.item()", None)],
    )
    both = run_both(program)
    both.same(drop=KINETO)
    assert both.ours.stdout == "[20]\n" * 4 + "0 1\n"
    process = both.process()
    assert kinds(process)[:3] == ["baseline", "marks", "trace"] and kinds(process).count("baseline") >= 2
    assert {process.marks[m].finding for m in process.reached} == {m.finding for m in process.marks}
    check_record(both, process)
    whole = [w for w in process.windows if w.trace and w.complete]
    assert whole
    (read,) = (mark.index for mark in process.marks if mark.finding == "t.item()")
    for window in whole if read not in process.thinned else ():
        assert window.trace is not None
        trace = json.loads(Path(window.trace).read_text())
        began = (window.start_ns - trace["baseTimeNanoseconds"]) / 1e3
        ended = (window.end_ns - trace["baseTimeNanoseconds"]) / 1e3
        reads = [e for e in trace["traceEvents"] if e.get("name") == "aten::item" and began < e["ts"] < ended]
        marked = [e for e in executions(process, "t.item()") if window.start_ns <= e[0] and e[1] <= window.end_ns]
        assert abs(len(reads) - len(marked)) <= 1 and len(marked) >= 2
    assert no_faults(process)


def test_dynamo_keeps_its_graphs(tmp_path: Path) -> None:
    program = Program(
        tmp_path,
        MODEL
        + """
import torch._dynamo
from torch._dynamo.utils import counters
def step(x):
    y = model(x) * 2
    y = y + x.sum()
    return y.relu()
def broken(x):
    y = model(x)
    n = read(y.argmax())
    return y * n
compiled = torch.compile(step, backend="eager")
halves = torch.compile(broken, backend="eager")
def run(seconds):
    end = until(seconds)
    while time.monotonic() < end:
        compiled(x)
        halves(x)
        work()
with torch.no_grad():
    compiled(x), halves(x)
    run(3)
print(counters["stats"]["unique_graphs"], sum(counters["graph_break"].values()), counters["frames"]["ok"])
print(dict(counters["recompile_limit"]))
""",
        [
            CALL,
            ("loop", "while time.monotonic() < end", "step"),
            ("statement", "y = model(x) * 2", None),
            ("call", "y.argmax()", None),
            ("call", "read(y.argmax())", None),
            ("statement", "return y * n", None),
        ],
    )
    both = run_both(program)
    both.same(r"W\d{4} [\d:.]+ \d+")
    process = both.process()
    check_record(both, process)
    found = {process.marks[m].finding for m in process.reached}
    assert {"work()"} <= found


RANKS = """
import os, torch, time
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
rank = dist.get_rank()
x = torch.ones(4) * (rank + 1)
end = until(2)
go = torch.ones(1)
for step in range(30000):
    y = x.clone()
    dist.all_reduce(y)
    work()
    if step % 50 == 0:  # both end in the same step
        go[0] = float(time.monotonic() < end)
        dist.all_reduce(go, dist.ReduceOp.MAX)
        if not go.item(): break
if rank == 0: print(y.tolist())
dist.destroy_process_group()
raise SystemExit(0)
"""


def test_torchrun_with_two_ranks(tmp_path: Path) -> None:
    program = Program(tmp_path, RANKS, [CALL, ("loop", "for step in", "step")])
    torchrun = Path(sys.executable).with_name("torchrun")
    both = run_both(
        program,
        [str(torchrun), "--nproc-per-node", "2", "--master-port", "PORT", "program.py"],
        env={"OMP_NUM_THREADS": "1"},
        timeout=120,
    )
    both.same()
    assert both.ours.stdout == "[3.0, 3.0, 3.0, 3.0]\n"
    workers = sorted(both.workers(), key=lambda p: p.rank if p.rank is not None else -1)
    assert [p.rank for p in workers] == [0, 1]
    for process in workers:
        assert "marks" in kinds(process) and process.clean_exit
        check_record(both, process)


SERVER = """
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        body = b"ok"
        if self.path != "/health":
            with torch.inference_mode():
                for step in range(20):
                    body = b"%d" % read(model(x).argmax())
                work()
        self.send_response(200)
        self.end_headers()
        self.wfile.write(body)
    def log_message(self, *words): pass
try:
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
except KeyboardInterrupt:
    print("stopped")
"""


def test_a_health_check_is_never_missed(tmp_path: Path) -> None:
    def drive(process: subprocess.Popen[bytes], folder: Path) -> None:
        wait_for(lambda: up(folder))
        end = time.monotonic() + 5

        def clients() -> None:
            while going(folder, end, "trace"):
                assert get(folder, "/")[0] == 200

        threads = [threading.Thread(target=clients) for _ in range(2)]
        for thread in threads:
            thread.start()
        while going(folder, end, "trace"):
            assert get(folder, "/health", timeout=10.0) == (200, b"ok")
            time.sleep(0.2)
        for thread in threads:
            thread.join()
        process.send_signal(signal.SIGINT)

    program = Program(tmp_path, MODEL + SERVER, [CALL, ("loop", "for step in", "step"), ("call", "t.item()", None)])
    both = run_both(program, [sys.executable, "program.py", "PORT"], drive=drive)
    both.same()
    assert both.ours.stdout == "stopped\n"
    process = both.process()
    assert "trace" in kinds(process)
    check_record(both, process, 1)
    assert process.stalls_ms  # they are told; how long they were is the machine's affair too
