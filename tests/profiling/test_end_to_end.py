"""From findings to verdicts through a real program, launcher and agent, on CPU-only torch."""

from __future__ import annotations

import ast
import sys
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from handmade import finding

from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Event, Finding, Mark, MarkKind, Verdict
from awp_lint.detector.profiling.run import profile_findings

PROGRAM = """
import sys
import time
import torch

model = torch.nn.Linear(32, 32)


def spin(seconds):
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        pass


def decode(x, steps):
    for _ in range(steps):
        x = model(x)
        spin(0.004)  # host
        token = x.argmax().item()  # wait
        if token > 1000:
            spin(0.001)  # never
    return x


with torch.inference_mode():
    end = time.monotonic() + 6
    while time.monotonic() < end:
        decode(torch.randn(1, 32), 20)
print("done")
sys.exit(3)
"""


@dataclass(frozen=True)
class Loop:
    path: str
    module: str
    mark: Mark
    unit: str


def planted(path: Path) -> tuple[list[Finding], Loop]:
    path.write_text(PROGRAM)
    tree = ast.parse(PROGRAM)
    function = next(n for n in tree.body if isinstance(n, ast.FunctionDef) and n.name == "decode")
    lines = PROGRAM.splitlines()

    def mark(node: ast.stmt, kind: MarkKind, event: Event) -> Mark:
        end = node.end_lineno or node.lineno
        return Mark(
            kind, node.lineno, node.col_offset, end, node.end_col_offset or 0, "decode", function.lineno, event
        )  # fmt: skip

    findings = []
    for node in ast.walk(function):
        for word, event in (("# host", Event.HOST), ("# wait", Event.WAIT), ("# never", Event.HOST)):
            if isinstance(node, ast.stmt) and word in lines[node.lineno - 1]:
                one = finding(node.lineno, "AWP202" if event is Event.HOST else "AWP101", event, str(path))
                findings.append(replace(one, id=word[2:], mark=mark(node, MarkKind.STATEMENT, event)))
    loop = next(n for n in function.body if isinstance(n, ast.For))
    return findings, Loop(str(path), "__main__", mark(loop, MarkKind.LOOP, Event.NONE), "step")


@pytest.mark.torch
def test_verdicts_of_a_cpu_program(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    findings, loop = planted(tmp_path / "app.py")
    outcome = profile_findings(findings, [loop], [sys.executable, str(tmp_path / "app.py")], {"warmup": "auto"})
    assert outcome.exit_code == 3
    assert capfd.readouterr().out == "done\n"
    assert outcome.profile["unit"] == "step" and outcome.profile["gap_ratio"] is None
    arithmetic = outcome.profile["arithmetic"]  # a layer of 32 × 32 a step
    assert outcome.profile["flops"] == 2048 or arithmetic["missing"] is not None
    assert outcome.profile["mfu"] is None and (arithmetic["missing"] or "no accelerator" in arithmetic["mfu_missing"])
    assert outcome.evidence["never"].verdict is Verdict.NOT_REACHED
    wait = outcome.evidence["wait"]
    assert wait.verdict is Verdict.UNATTRIBUTABLE and wait.scope == "host" and wait.gpu_ms is None
    assert wait.host_ms is not None and wait.host_ms > 0
    host = outcome.evidence["host"]
    assert host.calls_per_unit == 1.0
    assert host.host_ms is not None and host.host_ms >= 4.0  # how much more is the machine's load
    # Most of the step: confirmed, unless the machine was so unsteady that even that cannot be said.
    assert host.verdict in (Verdict.CONFIRMED, Verdict.UNATTRIBUTABLE)
    if host.verdict is Verdict.UNATTRIBUTABLE:
        assert "baselines differ" in host.reason


def test_command_that_does_not_exist(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no-such-command"):
        profile_findings([], [], [str(tmp_path / "no-such-command")], {})
