"""From the function that a model returns to edits of the file: only lines that differ are touched.

The model saw the function without comments and strings. Lines that it returns unchanged keep every byte of theirs,
comments among them; in lines that it changed the strings are put back.
"""

from __future__ import annotations

import ast
import difflib
import io
import textwrap
import tokenize

from awp_lint.detector.advice.subject import Subject
from awp_lint.detector.finding import Edit
from awp_lint.patches.splice import splice

MAX_CHARS = 60_000


class Refused(Exception):
    """Code that is not taken; one line says why."""


def sent_code(subject: Subject) -> str:
    """The function as the model sees it: masked, without its indentation."""
    return "\n".join(_bare(subject)) + "\n"


def _margin(subject: Subject) -> str:
    line = subject.masked.lines[subject.first - 1]
    return line[: len(line) - len(line.lstrip())]


def _bare(subject: Subject) -> list[str]:
    margin = _margin(subject)
    return [line.removeprefix(margin).rstrip() for line in subject.code.values()]


def edits_of(returned: str, subject: Subject) -> tuple[Edit, ...]:
    """The edits that turn the file's function into the returned one. Raises :class:`Refused`."""
    if len(returned) > MAX_CHARS:
        raise Refused(f"more than {MAX_CHARS} characters")
    code = _plain(returned)
    _one_function(code)
    lines = [(number, text) for number, text in zip(subject.code, _bare(subject), strict=True) if text]
    new = [line for line in code.split("\n") if line]
    edits: list[Edit] = []
    matcher = difflib.SequenceMatcher(None, [text for _, text in lines], new, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        if tag == "equal":
            continue
        block = [_restored(line, subject) for line in new[j1:j2]]
        edits.append(_edit(subject, lines, (i1, i2), block))
    if not edits:
        raise Refused("nothing is changed")
    _same_meaning(subject, edits, code)
    return tuple(edits)


def _plain(returned: str) -> str:
    """The code without comments, one line ending, no blank ends."""
    text = textwrap.dedent(returned.replace("\r\n", "\n").replace("\r", "\n")).strip("\n") + "\n"
    if any(not (c.isprintable() or c in "\n\t") for c in text):
        raise Refused("odd characters")
    lines = text.split("\n")
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.COMMENT:
                row, column = token.start
                lines[row - 1] = lines[row - 1][:column]
    except (tokenize.TokenError, SyntaxError) as error:
        raise Refused(f"not valid Python: {error.args[0]}") from None
    return "\n".join(line.rstrip() for line in lines)


def parsed(code: str) -> ast.Module:
    """The tree of code from a model. Raises :class:`Refused`."""
    try:
        return ast.parse(code)
    except SyntaxError as error:
        raise Refused(f"not valid Python: {error.msg}, line {error.lineno}") from None
    except (ValueError, RecursionError, MemoryError):
        raise Refused("not valid Python") from None


def _one_function(code: str) -> None:
    body = parsed(code).body
    if len(body) != 1 or not isinstance(body[0], ast.FunctionDef | ast.AsyncFunctionDef):
        raise Refused("code outside the function: one definition is wanted and nothing else")


def _restored(line: str, subject: Subject) -> str:
    try:
        return subject.masked.restored(line)
    except KeyError as error:
        raise Refused(f"{error.args[0]} is no string that could be put back") from None


def _edit(subject: Subject, lines: list[tuple[int, str]], span: tuple[int, int], block: list[str]) -> Edit:
    source, margin = subject.source, _margin(subject)
    text = "".join(f"{margin}{line}{source.newline}" for line in block)
    first, stop = span
    if first == stop:  # an insertion, behind the line before it
        after = lines[first - 1][0] if first else subject.first - 1
        at = source.line_starts[after] if after < len(source.line_starts) else len(source.text)
        return Edit(at, at, text)
    start = source.line_starts[lines[first][0] - 1]
    last = lines[stop - 1][0]
    if last < len(source.line_starts):
        return Edit(start, source.line_starts[last], text)
    return Edit(start, len(source.text), text.removesuffix(source.newline))


def patched_text(subject: Subject, edits: tuple[Edit, ...] | list[Edit]) -> str:
    """The file's text with the edits."""
    return splice(subject.source.text, edits)


def function_in(text: str, subject: Subject) -> ast.FunctionDef | ast.AsyncFunctionDef:
    """The function in a patched text: the one that begins on the same line. Raises :class:`Refused`."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            first = min([node.lineno, *(d.lineno for d in node.decorator_list)])
            if first == subject.first:
                return node
    raise Refused("the function does not begin where it did")


def _same_meaning(subject: Subject, edits: list[Edit], code: str) -> None:
    """The assembled function has to be the returned one, strings aside: no line may have been taken for another."""
    made = function_in(patched_text(subject, edits), subject)
    wanted = parsed(code).body[0]
    if _without_strings(made) != _without_strings(wanted):
        raise Refused("a string of several lines is changed")


def _without_strings(node: ast.AST) -> str:
    class Blank(ast.NodeTransformer):
        def visit_Constant(self, node: ast.Constant) -> ast.Constant:
            return ast.Constant(type(node.value)()) if isinstance(node.value, str | bytes) else node

        def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
            self.generic_visit(node)
            node.values = [value for value in node.values if not isinstance(value, ast.Constant)]
            return node

    import copy

    return ast.dump(Blank().visit(copy.deepcopy(node)))
