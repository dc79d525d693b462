"""The edits: calls that become graphs, and repairs of the code below them."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from awp_lint.detector.finding import Edit, Import
from awp_lint.detector.semantics.model import FunctionModel
from awp_lint.patches.steploop.calls import StepCall
from awp_lint.patches.steploop.project import Part
from awp_lint.patches.steploop.repairs import Repair, RepairKind
from awp_lint.rules.common import argument
from awp_lint.rules.nodemap import Definition


class Unmendable(Exception):
    """A place whose text is not what the tree promised; the whole patch is dropped."""


@dataclass
class Mending:
    """Edits and wanted names of the helper, by file."""

    edits: dict[str, list[Edit]] = field(default_factory=dict)
    names: dict[str, set[str]] = field(default_factory=dict)
    imports: dict[str, set[Import]] = field(default_factory=dict)

    def add(self, path: str, edits: Iterable[Edit], *names: str) -> None:
        """More edits of a file, which need these names of the helper."""
        self.edits.setdefault(path, []).extend(edits)
        self.names.setdefault(path, set()).update(names)


def wrap_call(step: StepCall, view: FunctionModel, part: Part, into: Mending) -> None:
    """``model(x, i)`` becomes ``run_step(model, x, at(i))``. Raises :class:`Unmendable`."""
    definition = Definition(view, part.model, part.source)
    start, end = definition.range(step.call)
    func_end = definition.range(step.call.func)[1]
    text = part.source.text
    bracket = text.find("(", func_end, end)
    if bracket < 0 or text[func_end:bracket].strip():
        raise Unmendable(f"line {step.call.lineno}: the call is not written plainly")
    first = _first_argument(step.call, definition, end)
    gap = text[bracket + 1 : first]
    comma = "," if step.call.args or step.call.keywords else ""
    func = text[start:func_end]
    if "\n" in gap or "\r" in gap:  # one argument a line: the function becomes the first of them
        edits = [Edit(start, bracket + 1, f"run_step({gap}{func}{comma}")]
    else:
        edits = [Edit(start, first, f"run_step({func}{comma}{' ' if comma else ''}")]
    names = {"run_step"}
    for number in step.moving:
        low, high = definition.range(number)
        edits += [Edit(low, low, "at("), Edit(high, high, ")")]
        names.add("at")
    into.add(view.path, edits, *names)


def _first_argument(call: ast.Call, definition: Definition, end: int) -> int:
    starts = [definition.range(passed)[0] for passed in call.args]
    text = definition.source.text
    for keyword in call.keywords:
        value = definition.range(keyword.value)[0]
        starts.append(text.rfind(keyword.arg or "", 0, value))
    if not starts:
        return end - 1
    first = min(starts)
    opening = text.rfind("(", definition.range(call.func)[1], first)
    bracket = text.find("(", definition.range(call.func)[1], first + 1)
    return first if opening == bracket else bracket + 1  # brackets around the first argument stay with it


def mend(repair: Repair, into: Mending) -> None:
    """One repair. Raises :class:`Unmendable`."""
    _MENDERS[repair.kind](repair, Definition(repair.view, repair.part.model, repair.part.source), into)


def _guard(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    assert isinstance(node, ast.If | ast.Assert)
    start, end = definition.range(node.test)
    text = definition.source.text[start:end]
    if isinstance(node.test, ast.BoolOp | ast.IfExp | ast.Lambda | ast.NamedExpr):
        text = f"({text})"
    new = f"not in_step() and {text}" if isinstance(node, ast.If) else f"in_step() or {text}"
    into.add(repair.view.path, [Edit(start, end, new)], "in_step")


def _positions(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    assert isinstance(node, ast.Call)
    moved = node if isinstance(node.func, ast.Attribute) and node.func.attr == "to" else None
    made = node
    if moved is not None:
        assert isinstance(node.func, ast.Attribute)
        inner = node.func.value
        if not isinstance(inner, ast.Call) or len(moved.args) != 1 or moved.keywords:
            raise Unmendable(f"line {node.lineno}: the move is not understood")
        made = inner
    start, end = made.args
    assert isinstance(end, ast.BinOp)
    count = end.right if ast.dump(end.left) == ast.dump(start) else end.left
    arguments = [_inner(count, definition), *(f"{k.arg}={definition.text(k.value)}" for k in made.keywords)]
    if moved is not None:
        if any(k.arg == "device" for k in made.keywords):
            raise Unmendable(f"line {node.lineno}: made on one device and moved to another")
        arguments.append(f"device={definition.text(moved.args[0])}")
    new = f"{_operand(start, definition)} + {definition.text(made.func)}({', '.join(arguments)})"
    into.add(repair.view.path, [_replaced(node, new, definition)])


def _open_end(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    value = node.value if isinstance(node, ast.Assign) else node.upper if isinstance(node, ast.Slice) else None
    if value is None:
        raise Unmendable("nothing ends there")
    start, end = definition.range(value)
    text = definition.source.text[start:end]
    into.add(repair.view.path, [Edit(start, end, f"None if in_step() else {text}")], "in_step")


def _span(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    assert isinstance(node, ast.Slice) and node.lower is not None and isinstance(node.upper, ast.BinOp)
    holder = repair.view.parent(node)
    while holder is not None and not isinstance(holder, ast.Subscript):
        holder = repair.view.parent(holder)
    if holder is None:
        raise Unmendable("a slice of nothing")
    upper = node.upper
    count = upper.right if ast.dump(upper.left) == ast.dump(node.lower) else upper.left
    torch = definition.torch_name("torch.arange")
    into.imports.setdefault(repair.view.path, set()).update(definition.imports)
    base = definition.text(holder.value)
    start = definition.range(node.lower)[0]
    end = definition.range(upper)[1]
    new = f"{_operand(node.lower, definition)} + {torch}({_inner(count, definition)}, device={base}.device)"
    into.add(repair.view.path, [Edit(start, end, new)])


def _grow(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    assert isinstance(node, ast.Call) and isinstance(node.args[0], ast.List | ast.Tuple)
    old, new = (definition.text(part) for part in node.args[0].elts)
    dim = argument(node, 1, "dim")
    assert dim is not None
    text = f"grow({old}, {new}, dim={definition.text(dim)})"
    into.add(repair.view.path, [definition.replace(node, text)], "grow")


def _length(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    if isinstance(node, ast.Subscript):
        holder, dim = node.value, node.slice
    else:
        assert isinstance(node, ast.Call)
        holder, dim = node.func, node.args[0]
    assert isinstance(node, ast.expr) and isinstance(holder, ast.Attribute)
    text = f"length_of({definition.text(holder.value)}, {definition.text(dim)})"
    into.add(repair.view.path, [definition.replace(node, text)], "length_of")


def _attend(repair: Repair, definition: Definition, into: Mending) -> None:
    node = repair.node
    assert isinstance(node, ast.Call)
    into.add(repair.view.path, [definition.replace(node.func, "attend")], "attend")


_MENDERS: dict[RepairKind, Callable[[Repair, Definition, Mending], None]] = {
    RepairKind.GUARD: _guard,
    RepairKind.POSITIONS: _positions,
    RepairKind.OPEN_END: _open_end,
    RepairKind.SPAN: _span,
    RepairKind.GROW: _grow,
    RepairKind.LENGTH: _length,
    RepairKind.ATTEND: _attend,
}
_ATOMS = (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant)


def _operand(node: ast.expr, definition: Definition) -> str:
    text = definition.text(node)
    plain = isinstance(node, _ATOMS) or (isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add | ast.Mult))
    return text if plain else f"({text})"


def _inner(node: ast.expr, definition: Definition) -> str:
    return definition.text(node)


def _replaced(node: ast.expr, new: str, definition: Definition) -> Edit:
    parent = definition.view.parent(node)
    free = isinstance(parent, ast.Assign | ast.AnnAssign | ast.Return | ast.keyword) or (
        isinstance(parent, ast.Call) and node in parent.args
    )
    return definition.replace(node, new if free else f"({new})")
