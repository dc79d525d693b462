"""The slice with shapes of real programs: what the agent notes, and what the report counts."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
from programs import plan_of

from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import WindowKind

# It goes on until the agent has its slice, and a window behind it that holds whole requests.
HEAD = """
import glob, json, queue, sys, threading, time
import torch

torch.set_num_threads(1)
first, second = torch.nn.Linear(16, 32), torch.nn.Linear(32, 16)


def done():
    for name in glob.glob(sys.argv[1] + "/p*/process.json"):
        try:
            kinds = [one["kind"] for one in json.load(open(name))["windows"] if one["complete"]]
        except (OSError, ValueError):
            continue
        return "shapes" in kinds and "baseline" in kinds[kinds.index("shapes") :]


def some():
    begun = time.monotonic()
    while time.monotonic() < begun + 120 and not done():
        for _ in range(5):
            yield torch.randn(1, 50, 16)


def forward(x):
    return second(first(x).relu())
"""
ONE_THREAD = (
    HEAD
    + """

def handle(prompt):
    x = forward(prompt)[:, -1:]
    for step in range(12):
        x = forward(x)
        time.sleep(0.0005)


with torch.inference_mode():
    for prompt in some():
        handle(prompt)
"""
)
TWO_THREADS = (
    HEAD
    + """

work = queue.Queue()


def engine():
    with torch.inference_mode():
        while True:
            prompt, answer = work.get()
            x = forward(prompt)[:, -1:]
            for step in range(12):
                x = forward(x)
                time.sleep(0.0005)
            answer.put(x)


def handle(prompt):
    answer = queue.Queue()
    work.put((prompt, answer))
    answer.get()


threading.Thread(target=engine, daemon=True).start()
for prompt in some():
    handle(prompt)
"""
)
TOKEN = 2 * 2 * 16 * 32


@pytest.mark.torch
@pytest.mark.parametrize(("source", "together"), [(ONE_THREAD, True), (TWO_THREADS, False)])
def test_a_generation(source: str, together: bool, tmp_path: Path) -> None:
    """Where one thread begins requests and steps, a prefill of 50 positions is told from a token."""
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(source)
    session = tmp_path / "session"
    session.mkdir()
    plan = plan_of(program, [("function", "def handle", "request"), ("loop", "for step in range(12)", "step")])
    command = [sys.executable, str(program), str(session)]
    run = run_profiled(command, plan, RunOptions(directory=str(session), duration=200.0, limit=250.0))
    assert run.exit_code == 0, run.notes
    (process,) = run.processes
    window = next(w for w in process.windows if w.kind is WindowKind.SHAPES)
    assert window.complete and window.prefill is together
    assert window.fp32 == {"matmul": False, "conv": True}
    found: dict[str, Any] = analyse(run, []).profile["arithmetic"]
    assert found["missing"] is None and "no accelerator" in found["mfu_missing"]
    assert found["not_counted"] == []
    if together:
        assert (found["of"], found["unit"]["flops"]) == ("token", TOKEN)
        # on a busy machine a first step may take as long as if it held the prefill, and counts to it
        assert found["prefill"]["flops"] in (50 * TOKEN, 51 * TOKEN)
    else:
        assert found["of"] == "step" and found["prefill"] is None
        assert found["unit"]["flops"] >= TOKEN
    assert found["unit"]["dtypes"] == {"fp32": found["unit"]["flops"]}
