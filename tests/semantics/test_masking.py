"""Bodies taken out of a text: what is left parses, line for line where it was."""

from __future__ import annotations

import ast

import pytest

from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.masking import without_bodies

SOURCE = '''\
class A:
    def outer(self):
        def inner(x):
            def innermost(y):
                return y
            return innermost
        class B:
            def method(self):
                return 1
        return inner

    def other(self):
        """Doc."""
        return 2

def last(): return 3
'''


@pytest.mark.parametrize("newline", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("kept", [set(), {"A.other"}, {"A.outer.inner"}, {"last"}, {"A.outer.inner.innermost"}])
def test_what_is_left_parses_at_its_lines(kept: set[str], newline: str) -> None:
    text = SOURCE.replace("\n", newline)
    facts = extract(ast.parse(text), text)
    left = without_bodies(text, facts, lambda function: function.qualname in kept)
    assert left.count(newline) == text.count(newline)
    names = {node.name: node.lineno for node in ast.walk(ast.parse(left)) if isinstance(node, ast.FunctionDef)}
    assert (names["outer"], names["other"], names["last"]) == (2, 12, 16)
    for name in kept:
        assert name.rpartition(".")[2] in names
