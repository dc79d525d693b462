"""Reads that are put before a statement: where what they read has no name there, there is no fix."""

from __future__ import annotations

from pathlib import Path

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

CORPUS = Path(__file__).resolve().parents[2] / "corpus/rules"


def test_what_a_comprehension_binds_is_not_read_before_it() -> None:
    text = (CORPUS / "AWP104/bad_bound_in_expression.py").read_text(encoding="utf-8")
    rules = [rule for rule in all_rules() if rule.id == "AWP104"]
    found = run_rules(view_of_source(text, "pkg/boxes.py"), rules).findings
    assert len(found) >= 1
    assert [f.fix for f in found if f.fix is not None and f.fix.edits] == []
