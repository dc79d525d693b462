"""Functions that stand word for word in several files, or several times in one: what is known of one is known of all.

Model code is copied more than it is written: a third of what the functions of ``transformers`` hold is. What they say
is taken over from the first of them, moved to where the next one stands, as long as what they ask of the file around
them (which libraries it imports, what names mean there) has the same answer; otherwise they are looked at on their own.
Functions that hold other functions, classes or imports are left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from awp_lint.detector.semantics.repeating import FactsCopy
    from awp_lint.detector.semantics.resaying import ValuesCopy

MAX_KEPT = 60_000  # functions of which a process keeps what they say

#: What begins a line of the module, or of a class that stands there; closing brackets begin nothing.
_EDGE = re.compile(r"\n( {4})?(@|def |async def |[^\s#)\]}])")

Named: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef
Key: TypeAlias = tuple[str, bool]  # the text of a function, and whether it is a method


class Stretch(NamedTuple):
    """The lines of a text that may be one function: where they start in it, their numbers and indentation."""

    text: str
    start: int
    first: int
    last: int
    indent: int


def stretches(text: str) -> dict[int, Stretch]:
    """What may be functions of a module or methods of its classes, by the first line (that of a decorator, if any).

    By the look of the lines alone: some may lie in strings, or end too early where a string is not indented.
    """
    found: dict[int, Stretch] = {}
    if "\r" in text or "\f" in text:  # lines are counted in another way
        return found
    start = indent = -1  # of what is open
    defined = False  # whether it has come to its ``def``
    line, counted = 1, 0
    edges = [(edge.start() + 1, 4 if edge[1] else 0, edge[2]) for edge in _EDGE.finditer(text)]
    for at, column, word in [*edges, (len(text), 0, "")]:
        if start >= 0 and column > indent:
            continue
        if start >= 0 and defined:
            line += text.count("\n", counted, start)
            counted = start
            whole = _trimmed(text[start:at])
            found[line] = Stretch(whole, start, line, line + whole.count("\n"), indent)
        if start < 0 or defined or column < indent:
            start, indent, defined = at, column, False
        if word == "def " or word == "async def ":
            defined = True
        elif word != "@":
            start = -1
    return found


def _trimmed(text: str) -> str:
    """A text without the blank lines and comments at its end."""
    text = text.rstrip()
    at = text.rfind("\n")
    while at >= 0 and text[at:].lstrip().startswith("#"):
        text = text[:at].rstrip()
        at = text.rfind("\n")
    return text


class Copies:
    """What is known of functions by their text, in one process and for one target."""

    def __init__(self) -> None:
        self.facts: dict[Key, FactsCopy] = {}
        self.values: dict[Key, ValuesCopy] = {}

    def beside(self, text: str, parse: Callable[[str], ast.Module]) -> Copied:
        """The functions of another text; ``parse`` gives trees. What is found does not depend on what is known."""
        if len(self.facts) > MAX_KEPT:
            self.facts.clear()
            self.values.clear()
        return Copied(text, self, parse)


class Copied:
    """The functions of one text beside those that are known already."""

    def __init__(self, text: str, copies: Copies, parse: Callable[[str], ast.Module]) -> None:
        self.copies = copies
        self.text = text
        self._parse = parse
        self.stretches = stretches(text)
        self._left_out: set[int] = set()  # first lines of the functions whose body is not in the tree

    def tree(self) -> ast.Module:
        """The tree of the text, with ``pass`` for the bodies of functions that are known. Raises as the parser does."""
        shorter = self._shortened()
        if self._left_out:
            try:
                tree = self._parse(shorter)
            except Exception:  # told by the whole text, if it is true of that
                tree = None
            if tree is not None and self._left_out <= set(map(first_line, _outermost(tree))):
                return tree
            self._left_out.clear()
        return self._parse(self.text)

    def _shortened(self) -> str:
        known, values = self.copies.facts, self.copies.values
        parts: list[str] = []
        done = 0
        for first, stretch in self.stretches.items():
            key = stretch.text, stretch.indent > 0
            copy = known.get(key)
            at = 0 if copy is None or key not in values else copy.body
            if copy is None or not at:
                continue
            parts += [self.text[done : stretch.start + at], " " * copy.indent, "pass"]
            parts.append("\n" * stretch.text.count("\n", at))
            done = stretch.start + len(stretch.text)
            self._left_out.add(first)
        return "".join([*parts, self.text[done:]])

    def of(self, node: Named, method: bool) -> Stretch | None:
        """The lines of an outermost function, where nothing else stands on them."""
        stretch = self.stretches.get(first_line(node))
        if stretch is None or stretch.indent != node.col_offset or (stretch.indent > 0) is not method:
            return None
        return stretch if stretch.last == node.end_lineno or stretch.first in self._left_out else None

    def put_back(self, node: Named) -> None:
        """Give a function its body, if it was left out."""
        first = first_line(node)
        if first not in self._left_out:
            return
        stretch = self.stretches[first]
        above = "class _:\n" if stretch.indent else ""
        lines = "\n" * (first - 1 - bool(above))
        tree = self._parse(lines + above + stretch.text)
        holder: ast.Module | ast.ClassDef = tree
        if stretch.indent:
            assert isinstance(tree.body[0], ast.ClassDef)
            holder = tree.body[0]
        whole = holder.body[0]
        assert isinstance(whole, ast.FunctionDef | ast.AsyncFunctionDef)
        node.body, node.end_lineno = whole.body, whole.end_lineno
        self._left_out.discard(first)


def first_line(node: ast.stmt) -> int:
    """The line on which a statement begins, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return decorators[0].lineno if decorators else node.lineno


def _outermost(tree: ast.Module) -> list[Named]:
    """The functions of a module and the methods of its classes."""
    found: list[Named] = []
    for node in tree.body:
        for part in node.body if isinstance(node, ast.ClassDef) else (node,):
            if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
                found.append(part)
    return found
