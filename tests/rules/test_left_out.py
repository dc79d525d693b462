"""Rules are not asked about definitions in which they could only be unsure: what is surer than low stays the same."""

from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

CORPUS = Path(__file__).resolve().parents[2] / "corpus/rules"
CHOOSING = [rule for rule in all_rules() if rule.repeated or rule.doubted or rule.id == "AWP701"]


@pytest.mark.parametrize("rule", CHOOSING, ids=lambda rule: rule.id)
def test_nothing_sure_is_lost(rule: object) -> None:
    for path in sorted((CORPUS / rule.id).glob("bad_*.py")):  # type: ignore[attr-defined]
        text = path.read_text(encoding="utf-8")
        where = f"pkg/{path.name}"
        everything = run_rules(view_of_source(text, where), [rule], Confidence.LOW)  # type: ignore[list-item]
        asked = run_rules(view_of_source(text, where), [rule], Confidence.MEDIUM)  # type: ignore[list-item]
        wanted = [f.id for f in everything.findings if f.confidence is not Confidence.LOW]
        assert [f.id for f in asked.findings] == wanted, path.name


PER_REQUEST = """
import torch

def handler(x: torch.Tensor) -> float:
    return x.sum().item()
"""
IN_STEPS = """
import torch

def generate(x: torch.Tensor) -> torch.Tensor:
    for step in range(100):
        if x.sum() > 0:
            x = x * 2
    return x
"""


def test_loops_are_looked_into() -> None:
    from awp_lint.rules.common import runs_often

    often = {
        view.qualname: runs_often(view)
        for text in (PER_REQUEST, IN_STEPS)
        for view in view_of_source(text, "pkg/serving.py").functions()
    }
    assert often["generate"] and not often["handler"]


def test_host_files_are_never_sure() -> None:
    from awp_lint.rules.common import may_be_sure

    def sure(path: str) -> bool:
        return all(may_be_sure(view) for view in view_of_source(IN_STEPS, path).functions())

    assert sure("pkg/modeling_x.py") and not sure("pkg/image_processing_x.py")
