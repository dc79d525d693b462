"""What a finding asks for fits what the code does."""

from __future__ import annotations

import textwrap

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

LAYERS = """
    import torch

    class Layer(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            if {test}:
                hidden_states = torch.clamp(hidden_states, min=-1e4, max=1e4)
            return hidden_states

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.ModuleList(Layer() for _ in range(12))

        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            for layer in self.layers:
                hidden_states = layer(hidden_states)
            return hidden_states
"""


def message(test: str) -> str:
    view = view_of_source(textwrap.dedent(LAYERS.format(test=test)), path="code.py")
    (found,) = (f for f in run_rules(view, all_rules()).findings if f.rule == "AWP102")
    return found.message


def test_values_that_overflow_are_clamped_without_a_question() -> None:
    for test in ("torch.isinf(hidden_states).any()", "not hidden_states.isfinite().all()"):
        assert "mend without asking: `torch.clamp`" in message(test)


def test_other_questions_are_decided_above_the_layers() -> None:
    assert "once above the layers" in message("(hidden_states > 3).any()")
