"""One read in place of many: elements of a device tensor that Python wants as numbers come from one ``.tolist()``.

Three spellings: a loop over the tensor, elements by index, and one scalar that is asked for again and again. Every fix
is built whole, whichever of the findings asks for it, so that all of them bring the same edits.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from awp_lint.detector.finding import Edit, Fix, Safety
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import ancestors, maybe_device, names_in, short, target_names
from awp_lint.rules.doubts import default_none, optional_names
from awp_lint.rules.edits import base_name, fresh_name, insert_before, pure_chain
from awp_lint.rules.flow import after, version
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.sync.contexts import guarded, number_use, read_of
from awp_lint.rules.sync.scalars import number_effects, scalar

_Loop = ast.For | ast.AsyncFor | ast.While | ast.comprehension


def one_read(node: ast.expr, definition: Definition) -> Fix | None:
    """The fix that reads once what ``node`` (a read, a bound or a test on a hot path) takes element by element."""
    return _loop_elements(node, definition) or _indexed(node, definition) or scalar(node, definition)


# a loop over the tensor --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Element:
    """A loop variable and the tensor whose elements it takes."""

    loop: ast.For | ast.comprehension
    target: ast.Name
    source: ast.expr


def _loop_elements(node: ast.expr, definition: Definition) -> Fix | None:
    view = definition.view
    wanted = names_in(node)
    for loop in view.loops(node):
        if not isinstance(loop, ast.For | ast.comprehension):
            continue
        if isinstance(loop, ast.comprehension) and loop.is_async:
            continue
        for target, source in pairs(loop.target, loop.iter):
            if isinstance(target, ast.Name):
                if target.id in wanted and maybe_device(view.value(source)):
                    found = _Element(loop, target, source)
                    return _element_fix(found, definition) or _row_fix(found, definition)
            elif wanted & {getattr(part, "id", "") for part in target.elts}:
                return _rows_fix(loop, target, source, definition)
    return None


def _row_fix(found: _Element, definition: Definition) -> Fix | None:
    """A loop variable that is a row of which everybody takes numbers by index, or a row of a single number."""
    view, loop, name = definition.view, found.loop, found.target.id
    value = view.value(found.source)
    uses = view.uses(name)
    if not value.is_tensor or value.rank not in (None, 2) or written_by(found.source, loop, view):
        return None
    if any(view.parent(use) is None or not inside(use, loop, view) for use in uses) or len(view.assignments(name)) > 1:
        return None
    edits: list[Edit] = []
    single = value.rank == 2 and all(read_of(view, use) is not None and _asks_item(use, view) for use in uses)
    for use in uses:
        element = view.parent(use)
        if single:
            read = read_of(view, use)
            assert read is not None
            edits.append(definition.replace(read, name))
        elif isinstance(element, ast.Subscript) and element.value is use and _number_index(element.slice, view):
            if not number_use(view, element):
                return None
            read = read_of(view, element)
            if read is not None:
                edits.append(definition.replace(read, definition.text(element)))
        else:
            return None
    if not uses:
        return None
    code = _listed(found.source, definition)
    if single:
        code = f"{code.removesuffix('.tolist()')}.flatten().tolist()"
    return Fix(
        title=f"read `{short(found.source, 40)}` with one `.tolist()` before the loop",
        safety=Safety.UNSAFE,
        edits=(definition.replace(found.source, code), *edits),
        effects=number_effects(value.dtype),
        requires=() if value.rank == 2 else (f"`{short(found.source, 40)}` has two dimensions",),
    )


def _asks_item(use: ast.expr, view: FunctionView) -> bool:
    attribute = view.parent(use)
    return isinstance(attribute, ast.Attribute) and attribute.attr == "item"


def _rows_fix(
    loop: ast.For | ast.comprehension, target: ast.Tuple, source: ast.expr, definition: Definition
) -> Fix | None:
    """``for t, h, w in grid`` where all of them are numbers to everybody: go over the rows of ``grid.tolist()``."""
    view = definition.view
    value = view.value(source)
    if not value.is_tensor or value.device is Device.HOST or value.rank not in (None, 2):
        return None
    edits = [definition.replace(source, _listed(source, definition))]
    for part in target.elts:
        if not isinstance(part, ast.Name):
            return None
        own = [use for use in view.uses(part.id) if inside(use, loop, view)]
        rest = [use for use in view.uses(part.id) if use not in own]
        if any(view.parent(use) is None or version(part.id, use, view).node is loop for use in rest):
            return None
        if any(statement is not loop and inside(statement, loop, view) for statement in view.assignments(part.id)):
            return None
        for use in own:
            if not number_use(view, use):
                return None
            read = read_of(view, use)
            if read is not None:
                edits.append(definition.replace(read, part.id))
    return Fix(
        title=f"read `{short(source, 40)}` with one `.tolist()` before the loop",
        safety=Safety.UNSAFE,
        edits=tuple(edits),
        effects=number_effects(value.dtype),
        requires=() if value.rank == 2 else (f"`{short(source, 40)}` has two dimensions",),
    )


def pairs(target: ast.expr, iterated: ast.expr) -> Iterator[tuple[ast.Name | ast.Tuple, ast.expr]]:
    """Loop variables, and tuples of them, with what each goes over, ``enumerate`` and ``zip`` taken apart."""
    if isinstance(iterated, ast.Call) and isinstance(iterated.func, ast.Name) and iterated.args:
        parts = target.elts if isinstance(target, ast.Tuple) else ()
        if any(isinstance(part, ast.Starred) for part in (*parts, *iterated.args)):
            return
        if iterated.func.id == "enumerate" and len(parts) == 2:
            yield from pairs(parts[1], iterated.args[0])
            return
        if iterated.func.id == "groupby" and len(parts) == 2 and len(iterated.args) == 1 and not iterated.keywords:
            yield from pairs(parts[0], iterated.args[0])
            return
        if iterated.func.id == "zip" and len(parts) == len(iterated.args):
            for part, argument in zip(parts, iterated.args, strict=True):
                yield from pairs(part, argument)
            return
    if isinstance(target, ast.Name | ast.Tuple):
        yield target, iterated


def _element_fix(found: _Element, definition: Definition) -> Fix | None:
    view, loop, name, source = definition.view, found.loop, found.target.id, found.source
    value = view.value(source)
    if not value.is_tensor or value.rank not in (None, 1) or written_by(source, loop, view):
        return None
    uses = [use for use in view.uses(name) if inside(use, loop, view)]
    others = [use for use in view.uses(name) if use not in uses]
    if any(view.parent(use) is None or version(name, use, view).node is loop for use in others):
        return None
    if any(statement is not loop and inside(statement, loop, view) for statement in view.assignments(name)):
        return None
    numbers = [use for use in uses if number_use(view, use)]
    if not numbers:
        return None
    code = _listed(source, definition)
    whole = len(numbers) == len(uses)
    edits: list[Edit] = []
    if whole:
        spelling = name
        edits.append(definition.replace(source, code))
    else:
        if isinstance(loop, ast.comprehension) or not pure_chain(source):
            return None
        spelling = fresh_name(f"{name}_value", definition, definition.range(found.target))
        pair = f"{name}, {spelling}"
        edits.append(definition.replace(found.target, pair if found.target is loop.target else f"({pair})"))
        edits.append(definition.replace(source, f"zip({definition.text(source)}, {code})"))
    for use in numbers:
        read = read_of(view, use)
        if read is not None:
            edits.append(definition.replace(read, spelling))
        elif not whole:
            edits.append(definition.replace(use, spelling))
    return Fix(
        title=f"read `{short(source, 40)}` with one `.tolist()` before the loop",
        safety=Safety.UNSAFE,
        edits=tuple(edits),
        effects=number_effects(value.dtype),
        requires=() if value.rank == 1 else (f"`{short(source, 40)}` has one dimension",),
    )


# elements by index --------------------------------------------------------------------------------------------


def _indexed(node: ast.expr, definition: Definition) -> Fix | None:
    """``x[0].item(), x[1].item()`` in a row, or ``x[i]`` as a number in a loop that does not write ``x``."""
    view = definition.view
    for part in ast.walk(node):
        if isinstance(part, ast.Subscript) and pure_chain(part.value) and _number_index(part.slice, view):
            value = view.value(part.value)
            if value.is_tensor and value.device is not Device.HOST and value.rank in (None, 1):
                return _indexed_fix(part, definition)
    return None


def _number_index(index: ast.expr, view: FunctionView) -> bool:
    if isinstance(index, ast.UnaryOp) and isinstance(index.op, ast.USub):
        index = index.operand
    if isinstance(index, ast.Constant):
        return type(index.value) is int
    if not isinstance(index, ast.Name):
        return False
    # a counter: `for i in range(…)` or `for i, … in enumerate(…)`
    for loop in view.loops(index):
        if isinstance(loop, ast.For) and isinstance(loop.iter, ast.Call) and isinstance(loop.iter.func, ast.Name):
            called, target = loop.iter.func.id, loop.target
            if called == "enumerate" and isinstance(target, ast.Tuple) and target.elts:
                target = target.elts[0]
            if called in ("range", "enumerate") and isinstance(target, ast.Name) and target.id == index.id:
                return True
    return False


def _indexed_fix(element: ast.Subscript, definition: Definition) -> Fix | None:
    view = definition.view
    if _bound_in_expression(element, view):
        return None  # no statement before this one could read it
    text = ast.unparse(element.value)
    loop = _outermost_unwritten(element.value, view)
    same = [
        part
        for part in view.nodes(ast.Subscript)
        if isinstance(part, ast.Subscript)
        and isinstance(part.ctx, ast.Load)
        and ast.unparse(part.value) == text
        and _number_index(part.slice, view)
        and number_use(view, part)
    ]
    if loop is not None:
        anchor: ast.stmt = loop
        same = [part for part in same if inside(part, loop, view)]
    else:
        same = _in_a_row(element, same, view)
        if len(same) < 2:
            return None  # one read is what it is
        anchor = view.statement(same[0])
        block = view.parent(anchor)
        while block is not None and any(block not in [*ancestors(view, part)] for part in same):
            assert isinstance(block, ast.stmt)
            anchor, block = block, view.parent(block)
    if element not in same or _beside_device(same, loop, view) is None:
        return None
    if loop is None and any(guarded(view, part, view.statement(part)) for part in same):
        return None  # what stands before it may say that there is nothing to read
    missing = text in optional_names(view) or text in default_none(view)
    if missing and (loop is None or all(guarded(view, part, loop) for part in same)):
        return None
    companions = _beside_device(same, loop, view) or ()
    stem = fresh_name(f"{base_name(element.value)}_values", definition, (anchor.lineno, text))
    lines = [f"{stem} = {definition.text(element.value)}.tolist()"]
    edits: list[Edit] = []
    for part in same:
        read = read_of(view, part)
        edits.append(definition.replace(read or part, f"{stem}[{definition.text(part.slice)}]"))
    for number, use in enumerate(companions):
        known = next((other for other in companions[:number] if other.id == use.id), None)
        name = fresh_name(f"{use.id}_value", definition, (anchor.lineno, use.id))
        if known is None:
            lines.append(f"{name} = {use.id}.item()")
        edits.append(definition.replace(use, name))
    inserted = insert_before(anchor, lines, definition)
    if inserted is None:
        return None
    value = view.value(element.value)
    return Fix(
        title=f"read `{short(element.value, 40)}` once with `.tolist()`",
        safety=Safety.UNSAFE,
        edits=(inserted, *edits),
        effects=number_effects(value.dtype),
        requires=() if value.rank == 1 else (f"`{short(element.value, 40)}` has one dimension and is short",),
    )


def _bound_in_expression(element: ast.Subscript, view: FunctionView) -> bool:
    """Whether what has elements is the variable of a comprehension around it: ``[x[: b[1]] for b in boxes]``."""
    names = names_in(element.value)
    loops = [loop for loop in view.loops(element) if isinstance(loop, ast.comprehension)]
    return any(names & target_names(loop.target) for loop in loops)


def _beside_device(parts: Sequence[ast.Subscript], loop: ast.stmt | None, view: FunctionView) -> list[ast.Name] | None:
    """0-d device tensors that the elements are compared with, by name; None where that name changes in the loop."""
    found: list[ast.Name] = []
    for part in parts:
        parent = view.parent(part)
        if not isinstance(parent, ast.Compare):
            continue
        for other in (parent.left, *parent.comparators):
            if other in parts or not maybe_device(view.value(other)):
                continue
            if loop is None or not isinstance(other, ast.Name) or view.value(other).rank != 0:
                return None
            if written_by(other, loop, view):
                return None
            found.append(other)
    return found


def _in_a_row(element: ast.Subscript, same: list[ast.Subscript], view: FunctionView) -> list[ast.Subscript]:
    """Those of ``same`` that stand in the statements of one block with the element, the tensor unwritten between."""
    home = view.statement(element)
    parent = view.parent(home)
    if parent is None:
        return []
    root = _root(element.value)
    state = version(root, element, view)
    return [
        part
        for part in same
        if view.parent(view.statement(part)) is parent
        and version(root, part, view) == state
        and not _changed_between(element, part, root, view)
        and view.loops(part)[:1] == view.loops(element)[:1]
    ]


def _changed_between(one: ast.expr, other: ast.expr, root: str, view: FunctionView) -> bool:
    first, last = sorted((view.statement(one), view.statement(other)), key=lambda s: s.lineno)
    parent = view.parent(last)
    if parent is None or first is last:
        return False
    for statement in (first, *after(first, parent)):
        if statement is last:
            return False
        if any(may_write(part, root) for part in ast.walk(statement)):
            return True
    return True


def may_write(part: ast.AST, root: str) -> bool:
    """Whether a node writes into what a name holds: an item, an attribute, a method ending in `_`."""
    target: ast.expr | None = None
    if isinstance(part, ast.Subscript | ast.Attribute) and not isinstance(part.ctx, ast.Load):
        target = part
    elif isinstance(part, ast.AugAssign):
        target = part.target
    elif isinstance(part, ast.Call) and isinstance(part.func, ast.Attribute):
        name = part.func.attr
        if name.endswith("_") and not name.endswith("__"):
            target = part.func.value
    return target is not None and root == _root(target)


# shared --------------------------------------------------------------------------------------------


def _listed(source: ast.expr, definition: Definition) -> str:
    code = definition.text(source)
    if not isinstance(source, ast.Name | ast.Attribute | ast.Call | ast.Subscript):
        code = f"({code})"
    return f"{code}.tolist()"


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute | ast.Subscript):
        node = node.value
    return node.id if isinstance(node, ast.Name) else ""


def written_by(node: ast.expr, loop: ast.AST, view: FunctionView) -> bool:
    """Whether the loop may write what an expression is computed from."""
    written = view.written_in(loop)
    roots = {part.id for part in ast.walk(node) if isinstance(part, ast.Name) and part.id != "self"}
    chains = {
        f"self.{part.attr}"
        for part in ast.walk(node)
        if isinstance(part, ast.Attribute) and isinstance(part.value, ast.Name) and part.value.id == "self"
    }
    return bool((roots | chains) & written)


def inside(node: ast.AST, loop: ast.AST, view: FunctionView) -> bool:
    """Whether a node runs in the passes of a loop (of a ``for``: below its header)."""
    if isinstance(loop, ast.comprehension):
        holder = view.parent(loop)
        parts = [*ast.walk(holder)] if holder is not None else []
        return any(part is node for part in parts) and not any(part is node for part in ast.walk(loop.iter))
    body = loop.body if isinstance(loop, ast.For | ast.AsyncFor | ast.While) else []
    return any(part is node for statement in body for part in ast.walk(statement))


def _outermost_unwritten(node: ast.expr, view: FunctionView) -> ast.For | None:
    """The outermost ``for`` around a node whose passes leave what the node names alone."""
    found: ast.For | None = None
    for loop in view.loops(node):
        if isinstance(loop, ast.comprehension):
            continue
        if not isinstance(loop, ast.For) or written_by(node, loop, view):
            break
        found = loop
    return found
