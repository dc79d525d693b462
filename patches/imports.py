"""Add the imports that a rewrite needs, only where they are missing."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from awp_lint.detector.finding import Edit, Import
from awp_lint.detector.project.source import Source


def _spelling(wanted: Import) -> str:
    alias = f" as {wanted.alias}" if wanted.alias else ""
    if wanted.name is None:
        return f"import {wanted.module}{alias}"
    return f"from {wanted.module} import {wanted.name}{alias}"


def _present(tree: ast.Module, wanted: Import) -> bool:
    for node in tree.body:
        if isinstance(node, ast.Import) and wanted.name is None:
            for name in node.names:
                if name.name == wanted.module and name.asname == wanted.alias:
                    return True
                if wanted.alias is None and name.asname is None and name.name.startswith(wanted.module + "."):
                    return True  # ``import torch.nn`` binds ``torch`` too
        elif (
            isinstance(node, ast.ImportFrom)
            and node.level == 0
            and node.module == wanted.module
            and any((name.name, name.asname) == (wanted.name, wanted.alias) for name in node.names)
        ):
            return True
    return False


def _lines(wanted: Iterable[Import]) -> list[str]:
    """One line an import; names of one module share a line."""
    lines: dict[object, str] = {}
    for one in wanted:
        key = one if one.name is None else one.module
        lines[key] = f"{lines[key]}, {_spelling(one).partition(' import ')[2]}" if key in lines else _spelling(one)
    return list(lines.values())


def import_edits(source: Source, tree: ast.Module, wanted: Iterable[Import]) -> list[Edit]:
    """One insertion that adds the missing imports after the file's last top-level import.

    A file without imports gets them after its docstring. The file's own line ending is used.
    """
    lines = _lines([w for w in dict.fromkeys(wanted) if not _present(tree, w)])
    if not lines:
        return []
    anchor: ast.stmt | None = None
    for index, node in enumerate(tree.body):
        docstring = index == 0 and isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
        if isinstance(node, (ast.Import, ast.ImportFrom)) or docstring:
            anchor = node
        elif anchor is not None and not isinstance(anchor, ast.Expr):
            break  # the first block of imports: later ones may be conditional or late on purpose
    newline = source.newline
    block = "".join(line + newline for line in lines)
    if anchor is None or anchor.end_lineno is None:
        return [Edit(0, 0, block)]
    if anchor.end_lineno < len(source.line_starts):
        at = source.line_starts[anchor.end_lineno]
        return [Edit(at, at, block)]
    end = len(source.text)
    return [Edit(end, end, newline + block.removesuffix(newline))]
