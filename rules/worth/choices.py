"""The words by which a file chooses among its classes: ``elif activation == "geglu": self.act = GEGLU(…)``."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.semantics.switches import VARIES
from awp_lint.detector.semantics.view import FileView
from awp_lint.rules.fusion.context import whole_tree

_Choice = tuple[str, frozenset[str]]  # a word, and all that the same parameter is compared with


def choices_of(cls: str, file: FileView) -> frozenset[_Choice] | None:
    """The words that make a class of the file; None where something else than a word may, or its name says that what is
    saved with a model decides."""
    known: dict[str, frozenset[_Choice] | None] = file.memo.setdefault(choices_of, {})
    if cls not in known:
        found = set(_uses(whole_tree(file), cls, None)) if f"{cls}(" in file.text else {None}
        known[cls] = None if None in found else frozenset(choice for choice in found if choice is not None)
    return known[cls]


def _uses(node: ast.AST, cls: str, choice: _Choice | None) -> Iterator[_Choice | None]:
    """The choice around each use of a name."""
    if isinstance(node, ast.Name):
        if node.id == cls:
            yield choice
        return
    if isinstance(node, ast.FunctionDef):
        words = _compared(node)
        for child in ast.iter_child_nodes(node):
            yield from _below(child, cls, choice, words)
        return
    for child in ast.iter_child_nodes(node):
        yield from _uses(child, cls, choice)


def _below(
    node: ast.AST, cls: str, choice: _Choice | None, words: dict[str, frozenset[str]]
) -> Iterator[_Choice | None]:
    """As :func:`_uses`, within a function whose names are compared with these words."""
    if isinstance(node, ast.Name | ast.FunctionDef):
        yield from _uses(node, cls, choice)
        return
    inner = choice
    if isinstance(node, ast.If) and (asked := _asked(node.test)) is not None:
        name, word = asked
        inner = None if VARIES.fullmatch(name) else (word, words[name])
    taken = node.body if isinstance(node, ast.If) else []
    for child in ast.iter_child_nodes(node):
        yield from _below(child, cls, inner if any(child is part for part in taken) else choice, words)


def _compared(function: ast.FunctionDef) -> dict[str, frozenset[str]]:
    """Parameters of a function, with the words that they are compared with and the one that they have by default."""
    found: dict[str, frozenset[str]] = {}
    for part in ast.walk(function):
        if isinstance(part, ast.If) and (asked := _asked(part.test)) is not None:
            found[asked[0]] = found.get(asked[0], frozenset()) | {asked[1]}
    return found


def _asked(test: ast.expr) -> tuple[str, str] | None:
    """The name and the word of ``name == "word"``."""
    if not (isinstance(test, ast.Compare) and len(test.ops) == 1 and isinstance(test.ops[0], ast.Eq)):
        return None
    left, right = test.left, test.comparators[0]
    if isinstance(left, ast.Name) and isinstance(right, ast.Constant) and isinstance(right.value, str):
        return left.id, right.value
    return None
