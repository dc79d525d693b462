"""What all rules say of a text."""

from __future__ import annotations

import textwrap

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules


def found(code: str, path: str = "code.py") -> set[tuple[str, str]]:
    """Rules and confidences of a text's findings."""
    view = view_of_source(textwrap.dedent(code), path=path)
    return {(f.rule, f.confidence.value) for f in run_rules(view, all_rules()).findings}


LAYER = """
    import torch

    class Attention(torch.nn.Module):
        def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
            {body}
            return hidden_states
"""


def levels(code: str, rule: str) -> set[str]:
    return {level for name, level in found(code) if name == rule}
