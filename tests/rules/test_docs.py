"""Pages come from the classes; the checked-in folder is fresh; the examples in them do what they say."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from awp_lint.detector.semantics.model import view_of_source
from awp_lint.rules.base import Rule
from awp_lint.rules.docs import explain, pages
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

DOCS = Path(__file__).resolve().parents[2] / "docs" / "rules"
RULES = pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)


def test_folder_is_fresh() -> None:
    on_disk = {path.name: path.read_text(encoding="utf-8") for path in DOCS.glob("*.md")}
    assert on_disk == pages(), "run python -m awp_lint.rules.docs"


@RULES
def test_page_has_every_part(rule: Rule) -> None:
    page = explain(rule)
    assert page.startswith(f"# {rule.id} {rule.name}\n")
    for heading in ("What it flags", "Why it costs", "Example", "When it is right as it is", "Fix", "References"):
        assert f"## {heading}\n" in page


@RULES
def test_examples(rule: Rule) -> None:
    found = {}
    for kind, text in (("bad", rule.bad), ("good", rule.good)):
        run = run_rules(view_of_source(inspect.cleandoc(text) + "\n"), all_rules())
        assert run.problems == ()
        found[kind] = any(finding.rule == rule.id for finding in run.findings)
    assert found == {"bad": True, "good": False}
