"""Ranks of one job: windows lie in the same steps on all of them, traces too."""

from __future__ import annotations

import os
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest
from programs import plan_of

from awp_lint.detector.profiling.agent.ranks import Ranks, Stretch, of_this_process, stretches
from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.session import ProcessSession, Window, WindowKind


def test_windows_follow_each_other_with_room_between() -> None:
    rows = stretches(0, 100, 0.01, 0.25, 2)
    assert [row.kind for row in rows] == ["baseline", "marks", "trace", "trace", "baseline"]
    assert rows[0] == Stretch("baseline", 150, 25)  # half a second ahead
    assert [b.first - (a.first + a.steps) for a, b in pairwise(rows)] == [6, 6, 51, 51]
    slow = stretches(1, 7, 3.0, 0.5, 40)
    assert [(row.kind, row.first, row.steps) for row in slow] == [
        ("baseline", 11, 4), ("marks", 18, 4), ("trace", 25, 40), ("baseline", 68, 4),
    ]  # fmt: skip


class Steady:
    """A pace of one step for each time that somebody looks."""

    def __init__(self) -> None:
        self.done = 0

    def units(self) -> int:
        self.done += 1
        return self.done

    def counts(self) -> tuple[int, int]:
        return self.done + 1, 0


class Still(Steady):
    def counts(self) -> tuple[int, int]:
        return 0, 0


def test_the_first_rank_decides_for_all(tmp_path: Path) -> None:
    ranks = [Ranks(str(tmp_path), Steady(), lambda seconds: None, local, 2) for local in range(2)]  # type: ignore[arg-type]
    found: dict[int, object] = {}

    def come(local: int) -> None:
        found[local] = ranks[local].round(0, 0.01, 2, lambda: False)

    threads = [threading.Thread(target=come, args=(local,)) for local in (1, 0)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert found[0] == found[1]
    assert found[0]
    assert [rank.round(1, 0.01, 2, lambda: True) for rank in ranks] == [[], []]


def test_without_steps_each_goes_by_itself(tmp_path: Path) -> None:
    leader = Ranks(str(tmp_path), Still(), lambda seconds: None, 0, 1)  # type: ignore[arg-type]
    assert leader.round(0, 0.25, 2, lambda: False) is None


def test_who_is_a_rank(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("RANK", "LOCAL_RANK", "LOCAL_WORLD_SIZE"):
        monkeypatch.delenv(name, raising=False)
    assert of_this_process("", None, lambda seconds: None) is None  # type: ignore[arg-type]
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("LOCAL_RANK", "1")
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "1")
    assert of_this_process("", None, lambda seconds: None) is None  # type: ignore[arg-type]
    monkeypatch.setenv("LOCAL_WORLD_SIZE", "4")
    found = of_this_process("", None, lambda seconds: None)  # type: ignore[arg-type]
    assert found is not None
    assert (found.local, found.size) == (1, 4)


PROGRAM = """\
import os, sys, time, torch
import torch.distributed as dist
torch.set_num_threads(1)
dist.init_process_group("gloo")
log = open(os.path.join(sys.argv[1], "steps.%s" % os.environ["RANK"]), "w")
x = torch.ones(4)
go = torch.ones(1)
def step(number):
    log.write("%d %d\\n" % (number, time.time_ns()))
    dist.all_reduce(x)
    time.sleep(0.002)
def traced():
    import glob
    return any("trace-1.json" in open(name).read() and '"step": ' in open(name).read().split("trace-1.json")[1]
               and open(name).read().count('"end_ns": null') == 0
               for name in glob.glob(os.path.join(sys.argv[1], "p*/process.json")))
number = 0
while True:
    step(number)
    number += 1
    if number % 50 == 0:  # all end in the same step
        go[0] = 0.0 if os.environ["RANK"] == "0" and (traced() or number > 20000) else 1.0
        dist.broadcast(go, 0)
        if not go.item():
            break
log.close()
dist.destroy_process_group()
"""


@pytest.mark.torch
def test_two_ranks_are_traced_in_the_same_steps(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "session"
    folder.mkdir()
    torchrun = Path(sys.executable).with_name("torchrun")
    plan = plan_of(program, [("loop", "while True:\n    step", "step"), ("call", "step(number)", None)])
    command = [str(torchrun), "--standalone", "--nproc-per-node", "2", str(program), str(folder)]
    env = {**os.environ, "OMP_NUM_THREADS": "1"}
    session = run_profiled(command, plan, RunOptions(directory=str(folder), env=env, limit=200.0))
    assert session.exit_code == 0, session.notes
    ranks = sorted((p for p in session.processes if p.reached), key=lambda p: p.rank or 0)
    assert [p.rank for p in ranks] == [0, 1]
    steps = [_steps(process, folder) for process in ranks]
    assert len(steps[0]) >= 3
    assert WindowKind.TRACE in [kind for kind, _, _ in steps[0]]
    both = set(steps[0]) & set(steps[1])
    assert WindowKind.TRACE in [kind for kind, _, _ in both]
    # nothing was traced on one rank alone: what one has and the other has not came too late, or the run ended
    for own, other in (steps, steps[::-1]):
        begun = {(kind, first) for kind, first, _ in other}
        assert all((kind, first) in begun for kind, first, _ in own if kind is WindowKind.TRACE)


def _steps(process: ProcessSession, folder: Path) -> list[tuple[WindowKind, int, int]]:
    """Kind, first step and number of steps of each whole window, by the program's own log of its steps."""
    rows = [line.split() for line in (folder / f"steps.{process.rank}").read_text().splitlines()]
    times = [(int(number), int(when)) for number, when in rows]

    def inside(window: Window) -> list[int]:
        return [number for number, when in times if window.start_ns <= when <= window.end_ns]

    found = []
    for window in process.windows:
        if window.complete and window.step is not None:
            numbers = inside(window)
            assert numbers == list(range(numbers[0], numbers[-1] + 1))
            found.append((window.kind, numbers[0], len(numbers)))
    return found
