"""AWP007 and AWP009: what only a run as a whole shows, of ranks and of the compiler."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from awp_lint.detector.finding import Verdict
from awp_lint.detector.profiling.costs import process_costs
from awp_lint.detector.profiling.extras import extra_findings
from awp_lint.detector.profiling.launch import Plan, RunOptions, run_profiled
from awp_lint.detector.profiling.ranks import lags, straggler
from awp_lint.detector.profiling.recompiles import recompiles
from awp_lint.detector.profiling.session import Compilation, MarkRecords, ProcessSession, Window, WindowKind

MS = 1_000_000


def rank(number: int, ticks: list[int], first: int = 100) -> ProcessSession:
    window = Window(WindowKind.BASELINE, 0, 10_000 * MS, tuple(ticks), step=first)
    return ProcessSession(
        number + 1, 0, (), "3.12", None, False, (), number, "monitoring", (), {}, frozenset(), {}, (window,),
        MarkRecords(),
    )  # fmt: skip


def test_a_rank_that_always_begins_late_is_the_straggler() -> None:
    even = [n * 10 * MS for n in range(1, 41)]
    late = [tick + 2 * MS for tick in even]
    found = lags([rank(0, even), rank(1, late)])
    assert [(lag.rank, lag.ms, lag.share, lag.last, lag.steps) for lag in found] == [
        (0, 0.0, 0.0, 0.0, 40), (1, 2.0, pytest.approx(0.2), 1.0, 40),
    ]  # fmt: skip
    named = straggler([rank(0, even), rank(1, late)])
    assert named is not None
    assert named.rank == 1
    # ranks that take turns at being last, and ranks without enough common steps: nobody
    turns = [tick + (3 * MS if n % 2 else -3 * MS) for n, tick in enumerate(even)]
    assert straggler([rank(0, even), rank(1, turns)]) is None
    assert straggler([rank(0, even), rank(1, late, first=125)]) is None
    assert straggler([rank(0, even)]) is None


def compiled(begun_s: float, again: bool, took: float, line: int = 4) -> Compilation:
    reason = "0/0: size mismatch" if again else ""
    return Compilation("m.py", line, "step", int(begun_s * 1e9), took, again, reason)


def test_what_is_compiled_again_behind_the_warm_up() -> None:
    """Of ten seconds 0.5 go into compiling ``step`` anew; its first time, and what came before, do not count."""
    process = replace(
        rank(0, []),
        compilations=(
            compiled(-1.0, True, 900.0),
            compiled(1.0, False, 800.0),
            compiled(2.0, True, 300.0),
            compiled(3.0, True, 200.0),
            compiled(3.5, True, 10.0, line=9),
        ),
    )
    dear, cheap = recompiles([process])
    assert (dear.rule, dear.span.line, dear.function) == ("AWP009", 4, "step")
    assert dear.evidence is not None
    assert dear.evidence.verdict is Verdict.CONFIRMED
    assert (dear.evidence.calls, dear.evidence.host_ms) == (2, 500.0)
    assert dear.evidence.predicted_saving is not None
    assert dear.evidence.predicted_saving.pct == pytest.approx(5.0)
    assert any("size mismatch" in why for why in dear.why)
    assert cheap.evidence is not None
    assert cheap.evidence.verdict is Verdict.PRESENT_BUT_FREE
    costs = process_costs(process, "run", lambda path: pytest.fail("no trace"))
    assert {f.rule for f in extra_findings([(process, costs)], [], "run")} == {"AWP009"}


PROGRAM = """\
import glob, json, sys, time
import torch, torch._dynamo
torch.set_num_threads(1)
torch._dynamo.config.automatic_dynamic_shapes = False
for name in ("recompile_limit", "cache_size_limit"):
    if hasattr(torch._dynamo.config, name):
        setattr(torch._dynamo.config, name, 200)

def step(x):
    return x * 2

compiled = torch.compile(step, backend="eager")

def phase():
    for name in glob.glob(sys.argv[1] + "/p*/process.json"):
        with open(name) as file:
            return json.load(file)["phase"]

size = 2
while phase() != "windows":
    torch.nn.functional.relu(compiled(torch.ones(2)))
    torch.nn.ReLU()(torch.ones(1))
    time.sleep(0.002)
for size in range(3, 7):
    compiled(torch.ones(size))
"""


@pytest.mark.torch
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="Dynamo may not be there")
def test_dynamo_s_account_of_a_real_program(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    from programs import plan_of

    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    folder = tmp_path / "session"
    folder.mkdir()
    plan = plan_of(program, [("call", "torch.ones(1)", None)])
    assert isinstance(plan, Plan)
    session = run_profiled(
        [sys.executable, str(program), str(folder)], plan, RunOptions(directory=str(folder), limit=200)
    )
    assert session.exit_code == 0, session.notes
    (process,) = (p for p in session.processes if p.reached)
    again = [one for one in process.compilations if one.again and one.function == "step"]
    assert len(again) == 4
    assert {one.line for one in again} == {9}
    assert all("size mismatch" in one.reason for one in again)
    (found,) = (f for f in recompiles([process]) if f.function == "step")
    assert found.span.line == 9  # some may have come before the first window opened
