"""``--verify`` from the command line: the report by its schema, nothing written without being proven."""

from __future__ import annotations

import json
import subprocess
import sys
import textwrap
from pathlib import Path

import jsonschema
import pytest

from awp_lint.detector.reporting.json_report import schema

PROGRAM = textwrap.dedent("""\
    import torch
    from torch import nn


    class Model(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(64, 64) / 64)

        def forward(self, x: torch.Tensor, start: int) -> torch.Tensor:
            positions = torch.arange(start, start + 64).to(x.device)
            for _ in range(8):
                x = torch.tanh(x @ self.weight + positions * 1e-6)
            return x


    @torch.inference_mode()
    def generate(model: Model, x: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
        for step in range(max_new_tokens):
            x = model(x, step)
        return x


    def main(count: int, device: str) -> None:
        torch.set_num_threads(1)
        model = Model().to(device).eval()
        total = 0.0
        for _ in range(count):
            total += float(generate(model, torch.ones(1, 64, device=device), 50).sum())
        print(round(total, 3))


    if __name__ == "__main__":
        main(150, "cpu")
""")


def _awp_lint(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "awp_lint", "--no-cache", "--isolated", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=250, check=False)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    pytest.importorskip("torch")
    (tmp_path / "serve.py").write_text(PROGRAM)
    return tmp_path


def test_a_report_with_proofs(program: Path) -> None:
    before = (program / "serve.py").read_bytes()
    result = _awp_lint(
        program, "serve.py", "--select", "AWP602", "--verify", "--budget", "20", "--format", "json",
        "--output", "report.json", "--profile", sys.executable, "serve.py",
    )  # fmt: skip
    assert result.returncode in (0, 1), result.stderr
    assert len(result.stdout.split()) == 1, "the program's output is shown once, that of the proof's launches not"
    report = json.loads((program / "report.json").read_text())
    jsonschema.validate(report, schema())
    (finding,) = report["findings"]
    found = finding["verification"]
    assert found["equality"].endswith("equal")
    assert found["verdict"] in ("no_effect", "not_resolved", "verified")
    assert found["low_pct"] <= found["saving_pct"] <= found["high_pct"]
    assert report["profile"]["verification"]["launches"] >= 1
    assert (program / "serve.py").read_bytes() == before
    assert {path.name for path in program.iterdir()} - {"__pycache__"} == {"serve.py", "report.json"}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--verify",), "--verify measures patches in a running program"),
        (("--budget", "5"), "--budget goes with --verify"),
        (("--guard", "base.json"), "needs a run"),
        (("--use-profile", "missing.json"), "cannot be read"),
        (("--guard", "missing.json", "--profile", "true"), "cannot be read"),
    ],
)
def test_wrong_use(tmp_path: Path, arguments: tuple[str, ...], words: str) -> None:
    result = _awp_lint(tmp_path, *arguments)
    assert result.returncode == 2
    assert words in result.stderr


def test_a_saved_run_prices_findings_and_guards_the_next(program: Path) -> None:
    run = ("--profile", sys.executable, "serve.py")
    first = _awp_lint(program, "serve.py", "--save-profile", "base.json", *run)
    assert "holds 1 run" in first.stderr, first.stderr
    priced = _awp_lint(program, "serve.py", "--use-profile", "base.json", "--format", "json")
    report = json.loads(priced.stdout)
    jsonschema.validate(report, schema())
    assert any(f["evidence"] and f["evidence"]["calls_per_unit"] == 1.0 for f in report["findings"])
    again = _awp_lint(program, "serve.py", "--guard", "base.json", *run)
    assert again.returncode == 0, again.stderr
    (program / "serve.py").write_text(
        PROGRAM.replace("x = model(x, step)", "x = model(x, step)\n        if x.max() > 99:\n            break")
    )
    planted = _awp_lint(program, "serve.py", "--guard", "base.json", *run)
    assert planted.returncode == 1, planted.stderr
    assert "device reads a step: 0 → 1" in planted.stderr
