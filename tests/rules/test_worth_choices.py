"""A part that one word of a choice makes is hidden where a package says others and never that one."""

from __future__ import annotations

import textwrap
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.scan import scan

LAYERS = """
    import torch
    from torch import nn

    class Snake(nn.Module):
        def forward(self, x: torch.Tensor, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            a = torch.exp(a) + 0.1
            b = torch.exp(b) + 0.1
            return x + (1.0 / b) * torch.pow(torch.sin(x * a), 2) * x

    class FeedForward(nn.Module):
        def __init__(self, width: int, {parameter}: str = "gelu"):
            super().__init__()
            if {parameter} == "gelu":
                self.act = nn.GELU()
            elif {parameter} == "snake":
                self.act = Snake()
            self.out = nn.Linear(width, width)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.out(self.act(x))
"""
MODEL = """
    import torch
    from torch import nn
    from .layers import FeedForward

    class Model(nn.Module):
        def __init__(self, width: int):
            super().__init__()
            self.layers = nn.ModuleList([FeedForward(width{given}) for _ in range(8)])

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                x = layer(x)
            return x
"""


@pytest.mark.parametrize(
    ("parameter", "given", "told"),
    [
        ("activation", "", False),
        ("activation", ", 'gelu'", False),
        ("activation", ", 'snake'", True),
        ("activation", ", activation='snake'", True),
        ("hidden_act", "", True),  # comes with what is saved
    ],
)
def test_a_word_that_nobody_says(tmp_path: Path, parameter: str, given: str, told: bool) -> None:
    files = {"__init__": "", "layers": LAYERS.format(parameter=parameter), "model": MODEL.format(given=given)}
    for name, text in files.items():
        path = tmp_path / "lib" / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        path.write_text(textwrap.dedent(text))
    result = scan((".",), Settings(cache=False, jobs=1), cwd=str(tmp_path))
    assert any(finding.rule == "AWP301" for finding in result.findings) is told
