"""What authors say in words: that a branch is the fallback, that a tensor lives on the host.

A comment or a docstring is no proof, but whoever wrote «falls back to the device-side check» or ``# CPU tensor [1]``
knew more than the code shows. What they say only takes findings back, it never makes one.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.common import ancestors, callee, lines_of

_FALLBACK = re.compile(r"\bfall(s|ing)?[ -]?backs?\b|\bunreache?d\b|\bunreachable\b|\bdefensive(ly)?\b", re.IGNORECASE)
_ALLOWS = re.compile(r"(^|_)(allow(ed|s)?_(\w+_)?syncs?|syncs?_allowed)(_|$)")
_ON_HOST = re.compile(r"\b(CPU|host)[ -](side )?tensor|\btensor (is )?on (the )?(CPU|host)\b", re.IGNORECASE)


def called_fallback(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    """Whether the code around a node is called a fallback: its function or class in the docstring, or its branch."""
    return _in_fallback_branch(node, view, file) or any(map(_summary_says_so, _holders(view, file)))


def _in_fallback_branch(node: ast.AST, view: FunctionView, file: FileView) -> bool:
    child: ast.AST = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and child is not parent.test:
            taken = child in parent.body
            first = (parent.body if taken else parent.orelse)[0]
            if _FALLBACK.search(_comment_above(first, file)):
                return True
            above = _comment_above(parent, file)
            # above the whole statement it speaks of the other branch, unless it begins with the word
            if _FALLBACK.match(above.strip()) if taken else _FALLBACK.search(above) and not _is_elif(first, parent):
                return True
        child = parent
    return False


def _is_elif(first: ast.AST, parent: ast.If) -> bool:
    return isinstance(first, ast.If) and len(parent.orelse) == 1


def _holders(view: FunctionView, file: FileView) -> Iterator[ast.AST]:
    yield view.node
    if view.class_name is not None:
        own = view.class_name.rpartition(".")[2]
        yield from (s for s in file.tree.body if isinstance(s, ast.ClassDef) and s.name == own)


def _summary_says_so(node: ast.AST) -> bool:
    """Whether the first line of a docstring calls what it describes a fallback."""
    if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return False
    text = ast.get_docstring(node, clean=False)
    return text is not None and _FALLBACK.search(text.strip().partition("\n")[0]) is not None


def wait_allowed(node: ast.AST, view: FunctionView) -> bool:
    """Whether a wait stands in a block that its owner allows to wait: ``with gpu_sync_allowed():``."""
    return any(
        isinstance(parent, ast.With) and any(_allows(item.context_expr) for item in parent.items)
        for parent in ancestors(view, node)
    )


def _allows(opened: ast.expr) -> bool:
    return isinstance(opened, ast.Call) and _ALLOWS.search(callee(opened)) is not None


def called_host(names: set[str], view: FunctionView, file: FileView) -> bool:
    """Whether one of the names is a parameter that is said to hold a tensor on the host."""
    if not isinstance(view.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return False
    text = ast.get_docstring(view.node, clean=False) or ""
    arguments = view.node.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.arg not in names or argument.arg == "self":
            continue
        line = lines_of(file.text)[(argument.end_lineno or argument.lineno) - 1]
        if _ON_HOST.search(line.partition("#")[2]):
            return True
        described = re.search(rf"\b{re.escape(argument.arg)}\b[^\n:]*:([^\n]*)", text)
        if described is not None and _ON_HOST.search(described.group(1)):
            return True
    return False


def _comment_above(node: ast.AST, file: FileView) -> str:
    """The comment lines right above a statement."""
    lines = lines_of(file.text)
    number = getattr(node, "lineno", 1) - 2
    found: list[str] = []
    while number >= 0 and lines[number].lstrip().startswith("#"):
        found.append(lines[number].strip().lstrip("#"))
        number -= 1
    return " ".join(reversed(found))
