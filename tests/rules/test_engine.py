"""The engine: fingerprints, precedence, suppressions, marks, faults of rules."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import ClassVar

import pytest

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.engine import RuleRun, Vocabulary, run_rules
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.normal import normal_form
from awp_lint.rules.registry import all_rules


class _Calls(Rule):
    """Flags every call of one name."""

    called: ClassVar[str]
    name = "calls"
    root_cause = RootCause.RUNTIME
    cost_us = 1.0
    event = Event.WAIT
    mark = MarkKind.CALL
    nodes = (ast.Call,)
    anywhere = True

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if isinstance(node.func, ast.Name) and node.func.id == self.called:
            inner = tuple(n for n in ast.walk(node) if isinstance(n, ast.Call) and n is not node)
            yield Candidate(node, "it happens", "stop it", Confidence.MEDIUM, view.frequency(node), covers=inner)


class Slow(_Calls):
    id = "AWP198"
    called = "slow"
    words = (b"slow",)


class Outer(_Calls):
    id = "AWP199"
    called = "outer"
    words = (b"outer",)
    over = ("AWP198",)

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        return Fix("call it faster", Safety.SAFE, (definition.replace(candidate.node, "fast()"),))


class Broken(_Calls):
    id = "AWP197"
    called = "slow"
    words = (b"slow",)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        raise ValueError("boom")
        yield


def run(text: str, *rules: Rule, path: str = "pkg/mod.py") -> RuleRun:
    return run_rules(view_of_source(text, path=path), rules or (Slow(), Outer()))


def test_fingerprint_survives_moves_and_layout() -> None:
    one = run("def f(a):\n    return slow(a, 'x')\n").findings[0]
    other = run('import os\n\n\ndef f(a):\n    # moved\n    return slow(\n        a,\n        "x",\n    )\n').findings[
        0
    ]
    assert one.id == other.id
    assert one.line != other.line


def test_fingerprint_tells_scope_code_and_ordinal_apart() -> None:
    text = "def f(a):\n    slow(a)\n    slow(a)\n    slow(a + 1)\n\ndef g(a):\n    slow(a)\n"
    ids = [finding.id for finding in run(text).findings]
    assert len(ids) == len(set(ids)) == 4
    assert run(text, path="pkg/other.py").findings[0].id != ids[0]


def test_copies_share_a_group() -> None:
    a = run("class A:\n    def f(self, x):\n        y = slow(x)\n", path="a.py").findings[0]
    b = run("class B:\n    def f(self, x):\n        y = slow(x)\n", path="b.py").findings[0]
    c = run("class B:\n    def f(self, x):\n        z = slow(x)\n", path="b.py").findings[0]
    assert a.group == b.group and a.id != b.id
    assert a.group != c.group


def test_winner_absorbs_what_it_covers() -> None:
    found = run("def f(a):\n    outer(slow(a))\n    slow(a)\n").findings
    assert [(f.rule, f.line, f.also) for f in found] == [("AWP199", 2, ("AWP198",)), ("AWP198", 3, ())]


def test_suppression_of_a_loser_silences_the_winner() -> None:
    found = run("def f(a):\n    outer(slow(a))  # awp: ignore[AWP198] measured\n")
    assert found.findings == ()
    assert [(f.rule, f.suppressed) for f in found.suppressed] == [("AWP199", "measured")]
    assert found.suppressed[0].fix is None
    assert found.unused == ()


def test_suppression_in_a_compound_statement_covers_its_header_only() -> None:
    found = run("def f(a):\n    if slow(a):  # awp: ignore[AWP198]\n        slow(a)\n")
    assert [f.line for f in found.findings] == [3]


def test_unused_suppressions_are_told() -> None:
    found = run("def f(a):\n    return a  # awp: ignore[AWP198] old\n")
    assert [(p.line, p.message) for p in found.unused] == [(2, "unused suppression of AWP198")]
    # What did not run cannot be called unused.
    assert run("x = 1  # awp: ignore[AWP602]\n").unused == ()


def test_a_failing_rule_is_a_problem_and_the_others_go_on() -> None:
    found = run("def f(a):\n    slow(a)\n    slow(a)\n", Broken(), Slow())
    assert [f.rule for f in found.findings] == ["AWP198", "AWP198"]
    assert [p.message for p in found.problems] == ["AWP197 failed on f: ValueError: boom"]


def test_confidence_floor_drops_before_precedence() -> None:
    class Low(Outer):
        def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
            for c in super().candidates(node, view, file):
                yield Candidate(c.node, c.message, c.action, Confidence.LOW, c.frequency, covers=c.covers)

    file = view_of_source("def f(a):\n    outer(slow(a))\n")
    found = run_rules(file, (Slow(), Low()), Confidence.MEDIUM)
    assert [f.rule for f in found.findings] == ["AWP198"]


def test_fix_edits_are_code_points_and_manual_without_rewrite() -> None:
    text = "def f(é):\n    x = 'ü', outer(é), slow(é)\n"
    outer, slow = run(text).findings
    assert outer.fix is not None and slow.fix is not None
    edit = outer.fix.edits[0]
    assert text[edit.start : edit.end] == "outer(é)" and edit.replacement == "fast()"
    assert slow.fix.safety is Safety.MANUAL and slow.fix.title == "stop it"


def test_mark_speaks_ast_positions() -> None:
    text = "class A:\n    @deco\n    def f(self, é):\n        x = 'ü', slow(é)\n"
    mark = run(text).findings[0].mark
    assert mark is not None
    assert (mark.line, mark.column, mark.end_line, mark.end_column) == (4, 18, 4, 26)  # UTF-8 bytes
    assert (mark.function, mark.function_line, mark.kind) == ("A.f", 2, MarkKind.CALL)


def test_span_is_one_based_code_points() -> None:
    span = run("def f(é):\n    x = 'ü', slow(é)\n").findings[0].span
    assert (span.line, span.column, span.end_line, span.end_column) == (2, 14, 2, 21)


def test_files_without_the_words_are_not_walked() -> None:
    class Never(Slow):
        words = (b"absent",)

        def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
            raise AssertionError

    assert run("def f(a):\n    slow(a)\n", Never()) == RuleRun()


def test_odd_files_do_not_fail_any_rule() -> None:
    texts = ["", "\n", "x = 1", "lambda: 0\n", "async def f():\n    async for x in y:\n        await x\n"]
    texts.append("x = " + "+".join(["a"] * 400) + "\n")
    texts.append("@a.b\nclass C(D, metaclass=M):\n    x: int = f(1)\n    def g(self): return [y for y in self if y]\n")
    for text in texts:
        assert run_rules(view_of_source(text), all_rules()).problems == ()


def test_normal_form_ignores_layout_and_keeps_meaning() -> None:
    def form(text: str) -> str:
        return normal_form(ast.parse(text).body[0])

    assert form("f(a,b)") == form("f(\n    a, b,  # why\n)")
    assert form("f(a, b)") != form("f(b, a)")
    assert form("f('a')") == form('f("a")')
    assert form("x = a + b") != form("x = a - b")
    header = normal_form(ast.parse("for i in x:\n    f(i)").body[0], header_only=True)
    assert header == normal_form(ast.parse("for i in x:\n    g(i)").body[0], header_only=True)


class Named(Rule):
    """Flags every call that it is asked about."""

    id = "AWP196"
    name = "named"
    root_cause = RootCause.RUNTIME
    cost_us = 1.0
    event = Event.WAIT
    nodes = (ast.Call,)
    calls = frozenset({"slow"})
    words = (b"def f", b"PYTORCH_SLOW")
    anywhere = True

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        yield Candidate(node, "it happens", "stop it", Confidence.MEDIUM, view.frequency(node))


class Wider(Named):
    id = "AWP195"

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        yield from super().candidates(node, view, file)


def test_calls_are_told_apart_by_the_last_name_of_what_is_called() -> None:
    text = """
from lib import slow as quick, other
def f(x):
    from lib import slow as soon
    slow(); x.slow(); quick(); soon(); other(); x.quick2(); x[0]()
"""
    assert [f.span.column for f in run(text, Named()).findings] == [5, 13, 23, 32]
    assert len(run(text, Wider()).findings) == 7  # `calls` speaks of the candidates of its own class alone


def test_words_are_looked_for_in_the_whole_text() -> None:
    text = "x = 'PYTORCH_SLOW'\ndef  f(): slow()\n"
    assert len(run(text, Named()).findings) == 1
    assert len(run(text.replace("PYTORCH_SLOW", "PYTORCH SLOW"), Named()).findings) == 0


@pytest.mark.parametrize(
    ("word", "there"),
    [
        (b".item", True),
        (b"[", True),  # no identifier in it
        (b":", False),
        (b"past_key_value", True),  # within an identifier
        (b"torch", False),
        (b"synchronize", False),
        (b"cuda(", False),  # its identifier is there, the whole word is not
        (b"no_rule_has_this", True),
        (b"no_rule_has_that", False),
    ],
)
def test_a_vocabulary_knows_words_of_rules_and_others(word: bytes, there: bool) -> None:
    text = "no_rule_has_this = self.cache[cuda].item()\nlast_past_key_values = None\n"
    assert Vocabulary(text).holds(word) is there


def test_a_vocabulary_holds_one_of_many_words() -> None:
    assert Vocabulary("x = y.item()").holds(b"torch", b".item")
    assert Vocabulary("x = unheard_of").holds(b"torch", b"unheard_of")
    assert not Vocabulary("x = y").holds(b"torch", b"unheard_of")
    assert not Vocabulary("x = y").holds()


def test_a_vocabulary_says_the_same_of_one_word_either_way() -> None:
    told = Vocabulary("x = y.item()  # .cuda")
    for word in (b".item", b".cuda(", b"cuda", b"unheard_of", b"["):
        assert told.has(word) is told.holds(word)
