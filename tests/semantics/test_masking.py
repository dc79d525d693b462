"""Source without the bodies of definitions in which nothing can be found."""

from __future__ import annotations

import ast
import textwrap

import pytest

from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.masking import without_bodies

SOURCE = textwrap.dedent(
    '''
    class A:
        def __init__(self):
            self.register_buffer("x", 1)

        @decorated(
            1)
        def cold(self,
                 y):
            """Text
            of two lines."""
            if y:
                return [
                    y,
                ]

        def one(self): return 1

        def hot(self):  # kept
            def inner():
                return 2
            return inner

        def outer(self):
            @wrapped
            def hot_inside():
                return 3
            return hot_inside
    tail = 1
    '''
)


def masked(source: str, *wanted: str) -> str:
    facts = extract(ast.parse(source), source)
    return without_bodies(source, facts, lambda number, function: function.qualname in wanted)


def test_what_stays_keeps_its_place() -> None:
    text = masked(SOURCE, "A.hot", "A.outer.hot_inside")
    assert text.count("\n") == SOURCE.count("\n")
    assert "of two lines" not in text and "register_buffer" in text and "return 1" in text
    before = {ast.dump(n, include_attributes=True) for n in ast.walk(ast.parse(SOURCE)) if isinstance(n, ast.Return)}
    after = {ast.dump(n, include_attributes=True) for n in ast.walk(ast.parse(text)) if isinstance(n, ast.Return)}
    assert len(after) == 5 and after < before
    assert [f.name for f in ast.walk(ast.parse(text)) if isinstance(f, ast.FunctionDef)].count("cold") == 1


def test_nothing_to_remove_gives_the_same_text() -> None:
    assert masked(SOURCE, "A.cold", "A.one", "A.hot", "A.outer") is SOURCE


@pytest.mark.parametrize("newline", ["\r\n", "\r", "\n"])
def test_line_endings_and_tabs(newline: str) -> None:
    source = newline.join(["class A:", "\tdef f(self):", "\t\tx = 'é'", "\t\treturn x", "y = 2", ""])
    text = masked(source)
    assert text.splitlines() == ["class A:", "\tdef f(self):", "\t\tpass", "", "y = 2"]
    ast.parse(text)


def test_constructors_that_register_stay_beside_what_stays() -> None:
    assert "register_buffer" not in masked(SOURCE)
    assert "register_buffer" not in masked(SOURCE, "tail")
    assert "register_buffer" in masked(SOURCE, "A.outer.hot_inside")
    other = SOURCE + 'class B:\n    def __init__(self):\n        self.register_buffer("z", 2)\n'
    assert 'register_buffer("z"' not in masked(other, "A.hot")
    plain = SOURCE.replace('self.register_buffer("x", 1)', "self.x = 1")
    assert "self.x = 1" not in masked(plain, "A.outer.hot_inside") and "self.x = 1" in masked(plain, "A.__init__")
