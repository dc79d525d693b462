"""Edits of whole statements that several rules make: drop, insert, hoist, take out of a branch."""

from __future__ import annotations

import ast
import keyword
import re
from collections.abc import Iterator, Sequence

from awp_lint.detector.finding import Edit
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.flow import after, binding
from awp_lint.rules.nodemap import Definition, first_line


def intermediates(node: ast.expr, keep: frozenset[str], view: FunctionView) -> list[ast.stmt]:
    """Assignments that only serve ``node``: nobody else uses the names they bind. ``keep`` stays untouched.

    Latest first; each is one plain assignment of one name, in the block of the node's statement.
    """
    found: list[ast.stmt] = []
    inside = {id(part) for part in ast.walk(node)}
    pending = [part for part in ast.walk(node) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Load)]
    home = view.parent(view.statement(node))
    while pending:
        name = pending.pop()
        if name.id in keep:
            continue
        bound = binding(name, view)
        if bound is None or bound[1] in found or view.parent(bound[1]) is not home:
            continue
        value, statement = bound
        if not _plain(statement) or len(view.assignments(name.id)) != 1:
            continue
        if any(id(use) not in inside for use in view.uses(name.id)):
            continue
        found.append(statement)
        inside |= {id(part) for part in ast.walk(value)}
        pending += [part for part in ast.walk(value) if isinstance(part, ast.Name)]
    return found


def _plain(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.AnnAssign):
        return isinstance(statement.target, ast.Name)
    return (
        isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name)
    )


def drop(statement: ast.stmt, definition: Definition) -> Edit | None:
    """Remove a statement with its lines; None where it shares them with other code or a comment."""
    source = definition.source
    start, end = definition.range(statement)
    first = source.line_starts[statement.lineno - 1]
    last_line = statement.end_lineno or statement.lineno
    last = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)
    if source.text[first:start].strip() or source.text[end:last].strip():
        return None
    return Edit(first, last, "")


def insert_after(statement: ast.stmt, code: str, definition: Definition) -> Edit | None:
    """Put a statement on a line of its own below another; None where that one shares its line with more code."""
    source = definition.source
    end = definition.range(statement)[1]
    stop = source.text.find("\n", end)
    stop = len(source.text) if stop < 0 else stop
    tail = source.text[end:stop].rstrip("\r")
    if tail.strip() and not tail.strip().startswith("#"):
        return None
    place = end + len(tail)
    return Edit(place, place, f"{source.newline}{definition.indent(statement)}{code}")


def drops(statements: list[ast.stmt], definition: Definition) -> list[Edit] | None:
    """The edits that remove all of them, None where one cannot be removed."""
    edits = [drop(statement, definition) for statement in statements]
    return None if None in edits else [edit for edit in edits if edit is not None]


def mutated_between(first: ast.stmt, last: ast.stmt, names: frozenset[str], view: FunctionView) -> bool:
    """Whether a statement of the same block between the two changes one of the names' tensors in place."""
    parent = view.parent(first)
    if parent is None or parent is not view.parent(last):
        return False
    for statement in after(first, parent):
        if statement is last:
            return False
        if any(name in names for name in written(statement)):
            return True
    return True


def written(statement: ast.stmt) -> Iterator[str]:
    """Names whose tensors a statement writes into."""
    for node in ast.walk(statement):
        target: ast.expr | None = None
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name = node.func.attr
            if name.endswith("_") and not name.endswith("__"):
                target = node.func.value
        elif isinstance(node, ast.Subscript) and not isinstance(node.ctx, ast.Load):
            target = node.value
        elif isinstance(node, ast.AugAssign):
            target = node.target
        while isinstance(target, ast.Subscript | ast.Attribute):
            target = target.value
        if isinstance(target, ast.Name):
            yield target.id


def fresh_name(wanted: str, definition: Definition, site: object) -> str:
    """A name that stands nowhere in the file yet: the wanted one, or with a number behind it.

    Fixes of a file may be applied together, so that no two sites get the same name; ``site`` tells them apart, and
    findings whose fixes are one and the same give the same site.
    """
    known = definition.names.get((wanted, site))
    if known is not None:
        return known
    name, number = wanted, 1
    while name in definition.names.values() or re.search(rf"\b{re.escape(name)}\b", definition.source.text):
        number += 1
        name = f"{wanted}_{number}"
    definition.names[wanted, site] = name
    return name


def base_name(node: ast.expr) -> str:
    """A readable stem for names of what an expression gives: ``timesteps`` of ``scheduler.timesteps[0]``."""
    while isinstance(node, ast.Subscript | ast.Call | ast.Starred | ast.UnaryOp | ast.BinOp):
        if isinstance(node, ast.Subscript | ast.Starred):
            node = node.value
        elif isinstance(node, ast.BinOp):
            node = node.right if isinstance(node.left, ast.Constant) else node.left
        elif isinstance(node, ast.UnaryOp):
            node = node.operand
        elif isinstance(node.func, ast.Attribute) and not _module_name(node.func.value):
            node = node.func.value
        else:
            node = node.args[0] if node.args else node.func
    if isinstance(node, ast.Attribute):
        return node.attr.lstrip("_") or "value"
    return node.id.lstrip("_") or "value" if isinstance(node, ast.Name) else "value"


def _module_name(node: ast.expr) -> bool:
    """``torch``, ``torch.linalg``, ``F``: what a function is taken from, by the usual names."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name) and node.id in ("torch", "F", "nn", "np", "numpy", "math")


def starts_line(statement: ast.stmt, definition: Definition) -> bool:
    """Whether nothing stands before a statement on its line; an ``elif`` does not count as one that may be preceded."""
    start = definition.range(statement)[0]
    first = definition.source.line_starts[statement.lineno - 1]
    if definition.source.text[first:start].strip():
        return False
    return not (isinstance(statement, ast.If) and definition.source.text.startswith("elif", start))


def indent_of(statement: ast.stmt, definition: Definition) -> str:
    """The white space before a statement that starts its line; unlike ``Definition.indent`` for any of the file."""
    line = definition.source.line_text(statement.lineno)
    return line[: len(line) - len(line.lstrip())].replace("\f", "")


def insert_before(statement: ast.stmt, lines: Sequence[str], definition: Definition) -> Edit | None:
    """Put statements on lines of their own above another; None where that one does not start its line."""
    if getattr(statement, "decorator_list", None) or not starts_line(statement, definition):
        return None
    indent = indent_of(statement, definition)
    line = statement.lineno
    while line > 1 and definition.source.line_text(line - 1).startswith(f"{indent}#"):
        line -= 1  # comments right above speak of the statement
    place = definition.source.line_starts[line - 1]
    return Edit(place, place, "".join(f"{indent}{line}{definition.source.newline}" for line in lines))


def insert_below(statement: ast.stmt, lines: Sequence[str], definition: Definition) -> Edit | None:
    """Put statements on lines of their own behind another, compound or not; None where it shares its last line."""
    source = definition.source
    if not starts_line(statement, definition):
        return None
    end = definition.range(statement)[1]
    last_line = statement.end_lineno or statement.lineno
    place = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)
    tail = source.text[end:place].strip()
    if tail and not tail.startswith("#"):
        return None
    indent = indent_of(statement, definition)
    code = "".join(f"{indent}{line}{source.newline}" for line in lines)
    if not source.text[:place].endswith(("\n", "\r")):
        code = source.newline + code.removesuffix(source.newline)
    return Edit(place, place, code)


def remove(statement: ast.stmt, definition: Definition) -> Edit | None:
    """Remove a statement with its lines and the comment behind it; the only one of a block gives way to ``pass``."""
    parent = definition.view.parent(statement)
    for field in ("body", "orelse", "finalbody"):
        block = getattr(parent, field, None)
        if isinstance(block, list) and len(block) == 1 and block[0] is statement:
            return definition.replace(statement, "pass")
    edit = drop(statement, definition)
    if edit is not None or not starts_line(statement, definition):
        return edit
    source, end = definition.source, definition.range(statement)[1]
    last_line = statement.end_lineno or statement.lineno
    stop = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)
    if not source.text[end:stop].lstrip().startswith("#"):
        return None
    return Edit(source.line_starts[statement.lineno - 1], stop, "")


def opens_arguments(place: int, text: str) -> bool:
    """Whether the bracket at an offset opens a call's arguments (or an index), not a bracketed expression."""
    before = text[:place].rstrip(" \t")[-10:]
    word = re.search(r"(\w+)$", before)
    if word is not None:
        return not keyword.iskeyword(word.group(1))
    return before.endswith((")", "]", '"', "'"))


def moved_lines(statement: ast.stmt, place: ast.stmt, definition: Definition) -> list[str] | None:
    """The lines of a statement, without their own indentation, to be inserted before another; None where text in them
    would change with it."""
    if not starts_line(statement, definition) or _multiline_text(statement):
        return None
    source, indent = definition.source, indent_of(statement, definition)
    start, end = definition.range(statement)
    lines = [source.line_text(n) for n in range(statement.lineno, (statement.end_lineno or statement.lineno) + 1)]
    last = len(lines) - 1
    tail = source.line_starts[statement.lineno - 1 + last]
    lines[-1] = source.text[tail:end] if last else source.text[start:end]
    lines[0] = lines[0].removeprefix(indent)
    if any(line.strip() and not line.startswith(indent) for line in lines[1:]):
        return None
    return [lines[0], *(line.removeprefix(indent) for line in lines[1:])]


def unwrap(branch: ast.If, definition: Definition, replaced: Sequence[Edit] = ()) -> Edit | None:
    """The edit that puts the body of an ``if`` without ``else`` in its place, with edits made inside the body.

    None where the body cannot be moved left as text: it stands on the header's line, or strings or comments in it begin
    further left than the code.
    """
    source = definition.source
    if branch.orelse or not starts_line(branch, definition) or branch.body[0].lineno == branch.lineno:
        return None
    outer, inner = indent_of(branch, definition), indent_of(branch.body[0], definition)
    if not inner.startswith(outer) or inner == outer or _multiline_text(branch):
        return None
    first = branch.body[0]
    start = source.line_starts[first.lineno - 1]
    test_end = definition.range(branch.test)[1]
    header = re.fullmatch(r"[ \t)]*:[ \t]*(#[^\r\n]*)?", source.text[test_end:start].rstrip())
    if header is None:
        return None
    comment = f"{outer}{header.group(1).rstrip()}{source.newline}" if header.group(1) else ""
    last_line = branch.end_lineno or branch.lineno
    stop = source.line_starts[last_line] if last_line < len(source.line_starts) else len(source.text)
    text, position = "", start
    for edit in sorted(replaced, key=lambda e: e.start):
        text += source.text[position : edit.start] + edit.replacement
        position = edit.end
    text += source.text[position:stop]
    lines = re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text)  # `splitlines` would cut at form feeds
    if any(line.strip() and not line.startswith(inner) for line in lines):
        return None
    moved = "".join(outer + line[len(inner) :] if line.strip() else line for line in lines)
    return Edit(source.line_starts[branch.lineno - 1], stop, comment + moved)


def _multiline_text(node: ast.AST) -> bool:
    for part in ast.walk(node):
        text = isinstance(part, ast.JoinedStr) or (
            isinstance(part, ast.Constant) and isinstance(part.value, str | bytes)
        )
        if text and getattr(part, "end_lineno", 0) != getattr(part, "lineno", 0):
            return True
    return False


def pure_chain(node: ast.expr) -> bool:
    """A name or a dotted chain: evaluating it twice costs and changes nothing."""
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def drop_keyword(call: ast.Call, name: str, definition: Definition) -> Edit | None:
    """The edit that takes a keyword argument and its comma out of a call; None where a comment would go too."""
    arguments: list[ast.AST] = [*call.args, *(k.value for k in call.keywords)]
    keyword = next((k for k in call.keywords if k.arg == name), None)
    if keyword is None:
        return None
    text = definition.source.text
    start = definition.source.offset(keyword.lineno, keyword.col_offset)
    end = definition.range(keyword.value)[1]
    line = definition.source.line_starts[keyword.lineno - 1]
    own_line = re.match(r"[ \t]*,[ \t]*(#[^\r\n]*)?(\r\n|\r|\n)", text[end:])
    if not text[line:start].strip() and own_line is not None:
        return Edit(line, end + own_line.end(), "")  # with the comment behind it, which speaks of this argument
    later = [definition.range(a)[0] for a in arguments if definition.range(a)[0] > end]
    if later:
        following = next(k for k in call.keywords if definition.range(k.value)[0] == min(later))
        stop = definition.source.offset(following.lineno, following.col_offset)
        return None if "#" in text[end:stop] else Edit(start, stop, "")
    before = [definition.range(a)[1] for a in arguments if definition.range(a)[1] < start]
    if not before:
        return Edit(start, end, "")
    begin = max(before)
    return None if "#" in text[begin:start] else Edit(begin, end, "")


def add_keyword(call: ast.Call, code: str, definition: Definition) -> Edit:
    """The edit that puts ``name=value`` behind the last argument of a call."""
    arguments: list[ast.expr] = [*call.args, *(k.value for k in call.keywords)]
    if not arguments:
        close = definition.range(call)[1] - 1
        return Edit(close, close, code)
    end = max(definition.range(argument)[1] for argument in arguments)
    text = definition.source.text
    while text[end : end + 1] == ")" and end < definition.range(call)[1] - 1:
        end += 1  # brackets around the last argument
    return Edit(end, end, f", {code}")


def cached_function(
    name: str, parameters: Sequence[str], code: str, definition: Definition, most: int | None = None
) -> Edit | None:
    """The edit that puts a function with a cache above the top-level definition around the view.

    The file has to import :mod:`functools`, which the fix must ask for. ``most``: how many results are kept.
    """
    place = above_definition(definition)
    if place is None:
        return None
    cache = "@functools.cache" if most is None else f"@functools.lru_cache(maxsize={most})"
    lines = [cache, f"def {name}({', '.join(parameters)}):", f"    return {code}", "", ""]
    return Edit(place, place, "".join(line + definition.source.newline for line in lines))


def above_definition(definition: Definition) -> int | None:
    """The offset of the line above the top-level definition around the view, comments that belong to it included."""
    node, source = definition.view.node, definition.source
    if isinstance(node, ast.Module):
        return None
    top = next(
        (
            statement
            for statement in definition.file.tree.body
            if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef)
            and statement.lineno <= node.lineno <= (statement.end_lineno or 0)
        ),
        None,
    )
    if top is None:
        return None
    line = first_line(top)
    while line > 1 and source.line_text(line - 1).startswith("#"):
        line -= 1
    return source.line_starts[line - 1]
