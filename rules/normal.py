"""A text of a piece of code that does not depend on layout, line numbers or the Python version.

Fingerprints are made of it, so it must be the same on every interpreter: neither ``ast.dump`` nor ``ast.unparse`` is.
"""

from __future__ import annotations

import ast
import hashlib
from collections.abc import Iterator

_SKIP = {"ctx", "type_comment", "kind", "type_params", "type_ignores"}
_BLOCKS = {"body", "orelse", "finalbody", "handlers", "cases"}


def normal_form(node: ast.AST, *, header_only: bool = False) -> str:
    """Node types, names and constants in order. ``header_only`` leaves out the blocks of compound statements."""
    return " ".join(_words(node, header_only))


def _words(root: ast.AST, header_only: bool) -> Iterator[str]:
    # An explicit stack: expressions may be nested deeper than the interpreter's own.
    stack: list[ast.AST | str] = [root]
    while stack:
        node = stack.pop()
        if isinstance(node, str):
            yield node
            continue
        yield type(node).__name__
        following: list[ast.AST | str] = []
        for name, value in ast.iter_fields(node):
            if name in _SKIP or value is None or value == []:
                continue
            if header_only and name in _BLOCKS and isinstance(node, ast.stmt | ast.ExceptHandler):
                continue
            following.append(name)
            for item in value if isinstance(value, list) else [value]:
                following.append(item if isinstance(item, ast.AST) else repr(item))
        stack.extend(reversed(following))


def digest(*parts: str) -> str:
    """A short hexadecimal name for the parts."""
    return hashlib.sha1("\x1f".join(parts).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()[:12]
