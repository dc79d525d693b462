"""Modules that are made and never run."""

from __future__ import annotations

import textwrap

import pytest

from awp_lint.detector.semantics.model import view_of_source

SPECULATOR = """
    import torch
    from torch import nn

    class SpeculatorNorm(nn.Module):
        def __init__(self, size):
            super().__init__()
            self.weight = nn.Parameter(torch.ones(size))

        def forward(self, x):
            return x * self.weight

    class Speculator({base}):
        def __init__(self, size):
            super().__init__()
            self.norm = SpeculatorNorm(size)

        def load_weights(self, weights):
            return set(weights)
    {more}
"""


@pytest.mark.parametrize(
    ("base", "more", "runs"),
    [
        ("nn.Module", "", False),
        ("nn.Module", "    def propose(self, x):\n            return self.norm(x)", True),
        ("nn.Module", "    def propose(self, x):\n            return [part(x) for part in self.children()]", True),
        ("nn.Sequential", "", True),  # whose forward is the library's
        ("nn.Module", "class Other(Speculator):\n        def forward(self, x):\n            return self.run(x)", True),
        ("nn.Module", "def load(size):\n        return SpeculatorNorm(size)", True),
    ],
)
def test_parts_of_a_holder_that_runs_nothing(base: str, more: str, runs: bool) -> None:
    code = textwrap.dedent(SPECULATOR.format(base=base, more=more))
    view = next(v for v in view_of_source(code).functions() if v.qualname == "SpeculatorNorm.forward")
    assert view.frequency(view.node).known is runs
