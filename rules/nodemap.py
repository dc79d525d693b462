"""From ``ast`` nodes to LibCST nodes, without position providers.

A definition's lines are parsed by LibCST unchanged, under a synthetic header where they are indented, and both trees
are walked in lockstep by kind and order. Where the two disagree the whole definition has no map (:class:`Mismatch`) and
its findings get no fix. Spans of edits come from the ``ast`` positions, which exclude surrounding brackets.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Edit, Import
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.view import FileView, FunctionView

if TYPE_CHECKING:
    import libcst as cst


class Mismatch(Exception):
    """The two trees of a definition do not correspond, or LibCST cannot parse it."""


@dataclass
class Definition:
    """One definition in both trees, and the making of edits in it."""

    view: FunctionView
    file: FileView
    source: Source
    imports: set[Import] = field(default_factory=set)
    names: dict[tuple[str, object], str] = field(default_factory=dict)  # new names of the file's fixes, by their sites
    _maps: dict[int, dict[int, cst.CSTNode]] = field(default_factory=dict)  # by the first statement of the parsed unit

    @functools.cached_property
    def whole(self) -> ast.Module:
        """The file's tree with every definition in it: the view's own lacks the bodies that no rule is asked about."""
        return ast.parse(self.source.text)

    def node(self, node: ast.AST) -> cst.CSTNode:
        """The LibCST node of an ``ast`` node of this definition. Raises :class:`Mismatch`."""
        unit = _unit(self.view, node)
        if not unit:
            raise Mismatch("the node lies in no statement")
        if id(unit[0]) not in self._maps:
            self._maps[id(unit[0])] = _map_unit(unit, self.source)
        try:
            return self._maps[id(unit[0])][id(node)]
        except KeyError:
            raise Mismatch(f"no counterpart for {type(node).__name__}") from None

    def text(self, node: ast.AST) -> str:
        """The source text of a node, its surrounding brackets left out."""
        start, end = self.range(node)
        return self.source.text[start:end]

    def range(self, node: ast.AST) -> tuple[int, int]:
        """Code-point offsets of a node."""
        position = _position(node)
        return self.source.offset(*position[:2]), self.source.offset(*position[2:])

    def replace(self, node: ast.AST, new: cst.CSTNode | str) -> Edit:
        """The edit that puts new code in a node's place. An expression's own outer brackets stay where they are."""
        start, end = self.range(node)
        return Edit(start, end, new if isinstance(new, str) else code_of(new, self.indent(node), self.source.newline))

    def indent(self, node: ast.AST) -> str:
        """The indentation of the statement that holds a node."""
        line = self.source.line_text(self.view.statement(node).lineno)
        return line[: len(line) - len(line.lstrip())].replace("\f", "")

    def torch_name(self, dotted: str) -> str:
        """How this file can spell a dotted torch name, by its own imports.

        Adds ``import torch`` to :attr:`imports` where no import of the file leads there.
        """
        best: str | None = None
        for local, meaning in self.file.imports.items():
            if dotted == meaning:
                spelling = local
            elif dotted.startswith(meaning + ".") and meaning.split(".")[0] == "torch":
                spelling = local + dotted[len(meaning) :]
            else:
                continue
            if best is None or len(spelling) < len(best):
                best = spelling
        if best is not None:
            return best
        self.imports.add(Import("torch"))
        return dotted


def code_of(node: cst.CSTNode, indent: str = "", newline: str = "\n") -> str:
    """The code of an expression or small statement as it reads inside a block of this indentation.

    Brackets that ``ast`` does not count as a part of the node are left out.
    """
    import libcst as cst

    if isinstance(node, cst.BaseExpression):
        owned = 1 if isinstance(node, cst.Tuple | cst.GeneratorExp) else 0  # ast counts these brackets as its own
        if len(node.lpar) > owned:
            node = node.with_changes(lpar=node.lpar[len(node.lpar) - owned :], rpar=node.rpar[:owned])
    small = node if isinstance(node, cst.BaseSmallStatement) else None
    if isinstance(node, cst.BaseExpression):
        small = cst.Expr(node)
    if small is None:
        return cst.Module([]).code_for_node(node)
    # Lines inside brackets are indented relative to the block that holds them.
    line = cst.SimpleStatementLine([small])
    if not indent:
        return cst.Module([line], default_newline=newline).code.rstrip("\r\n")
    block = cst.If(cst.Name("x"), cst.IndentedBlock([line], indent=indent))
    code = cst.Module([block], default_newline=newline).code
    return code[len(f"if x:{newline}{indent}") :].rstrip("\r\n")


def _position(node: ast.AST) -> tuple[int, int, int, int]:
    line, column = getattr(node, "lineno", None), getattr(node, "col_offset", None)
    end_line, end_column = getattr(node, "end_lineno", None), getattr(node, "end_col_offset", None)
    if line is None or column is None or end_line is None or end_column is None:
        raise Mismatch(f"{type(node).__name__} has no position")
    return line, column, end_line, end_column


def _unit(view: FunctionView, node: ast.AST) -> list[ast.stmt]:
    """The whole statements that are parsed to find a node: its definition, or the top-level statement at its line."""
    holder: FunctionView | None = view
    while holder is not None and isinstance(holder.node, ast.Lambda):
        holder = holder.outer()
    if holder is not None and isinstance(holder.node, ast.FunctionDef | ast.AsyncFunctionDef):
        return [holder.node]
    root = holder.node if holder is not None else None
    if not isinstance(root, ast.Module):
        raise Mismatch("a lambda without a surrounding definition")
    line = _position(node)[0]
    group: list[ast.stmt] = []
    last = 0
    for statement in root.body:  # statements that share a line are parsed together
        if first_line(statement) > last:
            if group and last >= line:
                break
            group = []
        group.append(statement)
        last = statement.end_lineno or statement.lineno
    return group


def _map_unit(unit: list[ast.stmt], source: Source) -> dict[int, cst.CSTNode]:
    import libcst as cst

    from awp_lint.rules.nodepairs import pair

    first = min(first_line(s) for s in unit)
    last = max(s.end_lineno or s.lineno for s in unit)
    start = source.line_starts[first - 1]
    end = source.line_starts[last] if last < len(source.line_starts) else len(source.text)
    text = source.text[start:end].lstrip("\f")  # a form feed starts the indentation anew
    indented = text[:1] in " \t"
    try:
        module = cst.parse_module(f"if 1:{source.newline}{text}" if indented else text)
    except Exception as error:  # LibCST raises several kinds, a native one among them
        raise Mismatch(f"LibCST cannot parse lines {first}-{last}: {error}") from None
    body: Sequence[cst.CSTNode] = module.body
    if indented:
        holder = module.body[0]
        if not isinstance(holder, cst.If):
            raise Mismatch("the synthetic header was lost")
        body = holder.body.body
    return pair(unit, body)


def first_line(statement: ast.stmt) -> int:
    """The line a statement starts on, its decorators included."""
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])
