"""The command as a program: its output is whole, its exit code the right one, whatever its streams are."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

WAITS = """
import torch

def generate(model: torch.nn.Module, x: torch.Tensor) -> torch.Tensor:
    for step in range(100):
        x = model(x)
        print(x.sum().item())
    return x
"""


@pytest.mark.parametrize("stream", ["pipe", "closed"])
def test_output_and_code(tmp_path: Path, stream: str) -> None:
    (tmp_path / "serve.py").write_text(WAITS)
    report = tmp_path / "report.json"
    # a shell closes the stream, as `>&-` does
    command = f'exec "{sys.executable}" -m awp_lint serve.py --isolated --no-cache --format json' + (
        f' --output "{report}" >&-' if stream == "closed" else ""
    )
    done = subprocess.run(["sh", "-c", command], cwd=tmp_path, capture_output=True, text=True, env=os.environ)
    text = report.read_text() if stream == "closed" else done.stdout
    assert text.rstrip().endswith("}") and '"findings"' in text, done.stderr
    assert done.returncode == (1 if '"rule"' in text else 0) and not done.stderr
