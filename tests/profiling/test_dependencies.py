"""Libraries whose code runs hot: scanned while the program runs, marked, priced, and traced to the user's line."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest
from handmade import finding
from programs import pythons

from awp_lint.detector.config import Settings
from awp_lint.detector.dependencies import Dependencies, dependencies_of, is_dependency, shown
from awp_lint.detector.finding import Confidence, Event, Evidence, Finding, Verdict
from awp_lint.detector.profiling.launch import Plan, RunOptions, run_profiled
from awp_lint.detector.profiling.run import with_late
from awp_lint.detector.profiling.session import WindowKind

# A stand-in for torch does: what is asked here is where marks come from, not what they cost.
LIBRARY = """\
from __future__ import annotations
import torch


def pick(logits: torch.Tensor):
    return torch.zeros(4, device="cuda").argmax().item()


def generate(model: torch.nn.Module, x: torch.Tensor, max_new_tokens: int):
    tokens = []
    for step in range(max_new_tokens):
        logits = model(x)
        tokens.append(pick(logits))
    return tokens
"""
PROGRAM = """\
import glob, json, sys, time
sys.path.insert(0, sys.argv[2])
import torch, hotlib

from torch.nn.modules.module import _call_impl

def handle():
    return hotlib.generate(_call_impl, 1, 5)

def done():
    pass  # once a window with marks was held behind the library's
    for name in glob.glob(sys.argv[1] + "/p*/process.json"):
        with open(name) as file:
            state = json.load(file)
        since = state.get("late", {}).get("since_ns", 1 << 62)
        if any(w["kind"] == "marks" and w["end_ns"] and w["start_ns"] > since for w in state["windows"]):
            return True

while not done():
    assert handle() == [7] * 5
print("handled")
"""
FORWARD = "torch/nn/modules/module.py"  # the file whose ``_call_impl`` tells that models run
MODULE = """\
import time
def _call_impl(x):
    time.sleep(0.002)
"""
TORCH = """\
class Tensor:
    def argmax(self): return self
    def item(self): return 7
def zeros(*sizes, **options): return Tensor()
"""


def laid_out(folder: Path) -> tuple[Path, Path, Path]:
    """The program, a library in a folder of packages, and the session's folder."""
    packages = folder / "lib" / "site-packages"
    for name, text in (("torch/__init__.py", TORCH), ("hotlib/__init__.py", LIBRARY), (FORWARD, MODULE)):
        (packages / name).parent.mkdir(parents=True, exist_ok=True)
        (packages / name).write_text(text)
    for name in ("torch/nn/__init__.py", "torch/nn/modules/__init__.py"):
        (packages / name).write_text("")
    app = folder / "app"
    app.mkdir()
    (app / "program.py").write_text(PROGRAM)
    session = folder / "session"
    session.mkdir()
    return app / "program.py", packages, session


@pytest.mark.parametrize("version", (next(iter(pythons())), list(pythons())[-1]))
def test_hot_code_of_a_library_is_marked_while_it_runs(version: str, tmp_path: Path) -> None:
    program, packages, folder = laid_out(tmp_path)
    late = dependencies_of([str(program)], Settings(cache=False, jobs=1))
    command = [pythons()[version], str(program), str(folder), str(packages)]
    session = run_profiled(command, Plan(), RunOptions(directory=str(folder), late=late, limit=100.0))
    assert session.exit_code == 0, session.notes
    assert not late.notes
    library = os.path.realpath(packages / "hotlib" / "__init__.py")
    assert {planned.path for planned in late.marks} == {library}
    (process,) = session.processes
    assert process.late is not None
    assert process.late[0] == 0
    since = process.late[1]
    pick = next(p for p in process.marks if p.unit is None and p.mark.line == 6)
    assert pick.index in process.reached
    assert process.reached[pick.index] >= since - 1_000_000_000
    path, line, function = process.led[pick.index]
    assert (path, function) == (os.path.realpath(program), "handle")
    assert "hotlib.generate" in program.read_text().splitlines()[line - 1]
    # the library's loop paces the windows from then on, five steps a call of ours
    assert process.pacing.get("step") is not None
    windows = [w for w in process.windows if w.kind is WindowKind.MARKS and w.start_ns > since]
    assert windows
    assert all(len(w.ticks) >= 4 for w in windows)
    outcome = with_late(late, session, [], None)
    found = next(f for f in outcome.dependencies if f.mark is not None and f.mark.line == 6)
    assert found.origin == "dependency"
    assert found.evidence is not None
    assert found.evidence.calls_per_unit == pytest.approx(1.0, abs=0.3)
    assert found.chain[-1].function == "handle"


def test_a_program_without_libraries_is_answered_at_once(tmp_path: Path) -> None:
    _, packages, folder = laid_out(tmp_path)
    late = Dependencies([str(tmp_path)], frozenset({os.path.realpath(packages / "hotlib" / "__init__.py")}), Settings())
    place = folder / "p1.1"
    place.mkdir()
    (place / "hot.txt").write_text(f"{packages}/hotlib/__init__.py\n{os.__file__}\n{packages}/torch/__init__.py")
    while not (folder / "late.json").exists():
        late.poll(folder, 5)
    assert (folder / "late.json").read_text() == '{"first": 5, "digests": {}, "marks": []}'
    assert late.marks == ()


def test_what_is_a_dependency(tmp_path: Path) -> None:
    _, packages, _ = laid_out(tmp_path)
    assert is_dependency(str(packages / "hotlib" / "__init__.py"))
    assert not is_dependency(str(packages / FORWARD))
    assert not is_dependency(os.path.realpath(os.__file__))
    assert not is_dependency(os.path.realpath(pytest.__file__))  # nothing of torch in it
    assert not is_dependency(str(tmp_path / "nothing.py"))


def test_only_what_ran_is_shown() -> None:
    def judged(verdict: Verdict, confidence: Confidence) -> Finding:
        return replace(finding(1, "AWP101", Event.WAIT, "a.py"), evidence=Evidence(verdict, ""), confidence=confidence)

    rows = [
        judged(Verdict.CONFIRMED, Confidence.LOW),
        judged(Verdict.PRESENT_BUT_FREE, Confidence.LOW),
        judged(Verdict.PRESENT_BUT_FREE, Confidence.MEDIUM),
        judged(Verdict.NOT_REACHED, Confidence.HIGH),
        judged(Verdict.STATIC_ONLY, Confidence.HIGH),
    ]
    assert shown(rows, Confidence.MEDIUM) == [rows[0], rows[2]]
