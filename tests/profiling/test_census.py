"""The census: which statements wait, by torch's own word, at their exact places, and with no trace in the program.

A stand-in for torch warns as torch does: in the frame that called the synchronising operation.
"""

from __future__ import annotations

import ast
import os
from pathlib import Path

import pytest
from programs import plan_of, pythons

from awp_lint.detector.config import Settings
from awp_lint.detector.dependencies import dependencies_of
from awp_lint.detector.finding import Confidence, Event, Finding, Mark, MarkKind, RootCause, Span, Verdict
from awp_lint.detector.profiling.census import unflagged
from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.run import with_late
from awp_lint.detector.profiling.session import Wait

TORCH = """\
import time, types, warnings
__version__ = "2.9.0"
version = types.SimpleNamespace(cuda="13.0")
autograd = types.SimpleNamespace(profiler=types.SimpleNamespace())
mode = [{mode}]
def set_sync_debug_mode(new):
    mode[0] = {{"default": 0, "warn": 1}}.get(new, new)
cuda = types.SimpleNamespace(
    is_initialized=lambda: {cuda},
    device_count=lambda: 0,
    get_sync_debug_mode=lambda: mode[0],
    set_sync_debug_mode=set_sync_debug_mode,
)
class Tensor:
    def _wait(self):
        time.sleep(0.0005)
        if mode[0]:
            warnings.warn("called a synchronizing CUDA operation (Triggered internally)", UserWarning, stacklevel=3)
        return 1
    def item(self): return self._wait()
    def tolist(self): return [self._inner()]
    def _inner(self): return self._wait()
    def __bool__(self): return bool(self._wait())
    def __getitem__(self, key): return self._wait()
"""
PROGRAM = """\
import glob, json, sys, warnings
sys.path.insert(0, sys.argv[2])
import torch
x = torch.Tensor()

def step():
    value = x.item()
    é = "é"; found = x[1:2]
    if x:
        value = max(
            x.item(),
            x.tolist()[0],
        )
    return [x.item() for _ in range(3)]

def done():
    for name in glob.glob(sys.argv[1] + "/p*/process.json"):
        with open(name) as file:
            state = json.load(file)
        since = state.get("late", {}).get("since_ns", 1 << 62)
        if any(w["kind"] == "marks" and w["end_ns"] and w["start_ns"] > since for w in state["windows"]):
            return True
        if state["phase"] == "done":
            return True

before = list(warnings.filters), warnings.showwarning
while not done():
    for n in range(3):
        step()
print(before == (list(warnings.filters), warnings.showwarning), torch.mode)
"""


def laid_out(folder: Path, cuda: bool = True, mode: int = 0) -> tuple[Path, Path, Path]:
    """The program, the folder of the stand-in, and the session's folder."""
    packages = folder / "site-packages"
    (packages / "torch").mkdir(parents=True)
    (packages / "torch" / "__init__.py").write_text(TORCH.format(cuda=cuda, mode=mode))
    program = folder / "app" / "program.py"
    program.parent.mkdir()
    program.write_text(PROGRAM, encoding="utf-8")
    session = folder / "session"
    session.mkdir()
    return program, packages, session


def known(path: Path) -> Finding:
    """What a rule found: the read at the top of ``step``."""
    mark = Mark(MarkKind.CALL, 7, 12, 7, 20, "step", 6, Event.WAIT)
    return Finding(
        "known000", "AWP101", "device-read", str(path), Span(7, 13, 7, 21), "step", "", (), RootCause.RUNTIME,
        "step", Confidence.HIGH, mark,
    )  # fmt: skip


@pytest.mark.parametrize("version", [name for name in pythons() if name in ("3.11", "3.13")])
def test_every_wait_at_its_place(version: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    program, packages, folder = laid_out(tmp_path)
    finding = known(program)
    late = dependencies_of([str(program)], Settings(cache=False, jobs=1), [finding])
    plan = plan_of(program, [("call", "x.item()", None), ("loop", "for n in range(3)", "step")])
    plan = type(plan)(tuple(m for m in plan.marks if m.unit or m.mark.line == 7), plan.digests)
    command = [pythons()[version], "-W", "error", str(program), str(folder), str(packages)]
    options = RunOptions(directory=str(folder), late=late, census=True, limit=100.0)
    session = run_profiled(command, plan, options)
    assert session.exit_code == 0, session.notes
    told = capfd.readouterr()
    assert told.out == "True [0]\n"
    assert "synchronizing" not in told.err
    (process,) = session.processes
    assert isinstance(process.census, tuple)
    lines = PROGRAM.encode().splitlines()
    seen = {(w.line, lines[w.line - 1][w.column : w.end_column].decode()): w.times for w in process.census}
    if (9, "if x:") in seen:  # where the test of a statement has the whole statement's place (3.11)
        seen[9, "x"] = seen.pop((9, "if x:"))
    steps = seen[7, "x.item()"]
    assert steps >= 1
    per_step = {
        (7, "x.item()"): 1, (8, "x[1:2]"): 1, (9, "x"): 1, (11, "x.item()"): 1, (12, "x.tolist()"): 1,
        (14, "x.item()"): 3,
    }  # fmt: skip
    assert set(seen) == set(per_step)
    for place, times in per_step.items():  # the window's begin and end may cut one step in two
        assert abs(seen[place] - times * steps) <= 2 * times
    assert {w.function.split(".")[0] for w in process.census} == {"step"}
    outcome = with_late(late, session, [finding], None)
    found = [f for f in outcome.extra_findings if f.rule == "AWP002"]
    assert sorted(f.span.line for f in found) == [8, 9, 11, 12, 14]
    assert {f.evidence.verdict for f in found if f.evidence} == {Verdict.UNATTRIBUTABLE}  # no trace of this torch
    assert all(f.evidence is not None and f.evidence.calls > 0 for f in found), "marked and counted in the same run"
    census = outcome.profile["census"]
    assert [row["line"] for row in census["waits"] if row["flagged"]] == [7]
    (read,) = (f for f in found if f.span.line == 8)
    assert PROGRAM.splitlines()[7][read.span.column - 1 : read.span.end_column - 1] == "x[1:2]"


def test_no_device_is_said(tmp_path: Path) -> None:
    program, packages, folder = laid_out(tmp_path, cuda=False)
    late = dependencies_of([str(program)], Settings(cache=False, jobs=1))
    plan = plan_of(program, [("loop", "for n in range(3)", "step")])
    command = [list(pythons().values())[-1], str(program), str(folder), str(packages)]
    options = RunOptions(directory=str(folder), late=late, census=True, limit=100.0, duration=1.0)
    session = run_profiled(command, plan, options)
    (process,) = session.processes
    assert process.census == "the program uses no CUDA device, and a CPU waits for nothing"
    assert with_late(late, session, [], None).profile["census"] == {
        "missing": process.census, "units": 0, "waits": [],
    }  # fmt: skip


def test_waits_without_columns_are_told_by_statements(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("def f(x):\n    if (x >\n            1):\n        y = x.item()\n    for i in x:\n        pass\n")
    real = os.path.realpath(path)
    waits = [Wait(real, line, None, None, None, "f", 3) for line in (2, 4, 5)]
    found = unflagged(waits, [], frozenset({real}))
    marks = [f.mark for f in found]
    places = [(m.line, m.column, m.end_line, m.end_column) for m in marks if m]
    assert places == [(2, 8, 3, 13), (4, 8, 4, 20), (5, 13, 5, 14)]
    assert {f.origin for f in found} == {"project"}
    tree = ast.parse(path.read_text())
    assert isinstance(tree.body[0], ast.FunctionDef)
    assert {(m.function, m.function_line) for m in marks if m} == {("f", 1)}
    assert unflagged(waits, found, frozenset()) == []
