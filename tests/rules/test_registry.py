"""The registry finds every rule, imports no LibCST, and selects by prefix."""

from __future__ import annotations

import subprocess
import sys

import pytest

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.rules.base import Rule
from awp_lint.rules.registry import all_rules, rule, rule_ids, screening_words, select


def test_ids_are_unique_sorted_and_match_their_modules() -> None:
    ids = [r.id for r in all_rules()]
    assert ids == sorted(set(ids))
    assert {"AWP101", "AWP102", "AWP105", "AWP111", "AWP201", "AWP401", "AWP501", "AWP602"} <= set(ids)
    for r in all_rules():
        assert type(r).__module__.endswith("." + r.id.lower())
    assert list(rule_ids()) == ids


@pytest.mark.parametrize("item", all_rules(), ids=lambda r: r.id)
def test_every_class_is_complete(item: Rule) -> None:
    assert isinstance(item.root_cause, RootCause) and isinstance(item.event, Event)
    assert isinstance(item.mark, MarkKind) and isinstance(item.confidence, Confidence)
    assert item.cost_us > 0 and item.words and item.nodes
    for text in (item.name, item.summary, item.what, item.why, item.fine, item.safety, item.bad, item.good):
        assert text.strip()
    assert not item.summary.endswith(".") and len(item.summary) <= 100
    assert item.references
    known = {r.id for r in all_rules()}
    assert item.id not in item.over
    assert all(name in known or name.startswith("AWP") for name in item.over)


def test_listing_imports_no_libcst() -> None:
    code = (
        "import sys; from awp_lint.rules.registry import all_rules; from awp_lint.rules.docs import explain;"
        "[explain(r) for r in all_rules()]; print('libcst' in sys.modules, 'torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]


def test_select() -> None:
    def ids(*args: tuple[str, ...]) -> set[str]:
        return {r.id for r in select(*args)}

    everything = {r.id for r in all_rules()}
    assert ids(("AWP",)) == everything
    assert ids(("AWP1",)) == {i for i in everything if i.startswith("AWP1")}
    assert ids(("AWP",), ("AWP101",)) == everything - {"AWP101"}
    assert ids(("AWP101",), ("AWP1",)) == {"AWP101"}
    assert ids(("AWP6",), (), ("awp101",)) == {i for i in everything if i.startswith("AWP6")} | {"AWP101"}


def test_rule_by_id() -> None:
    found = rule("awp101")
    assert found is not None and found.name == "device-read"
    assert rule("AWP999") is None


def test_screening_words() -> None:
    one, other = rule("AWP607"), rule("AWP608")
    assert one is not None and other is not None
    assert screening_words([one, other]) == {b"deepcopy", b"from_pretrained"}
