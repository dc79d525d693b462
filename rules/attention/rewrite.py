"""From attention that is written out to ``scaled_dot_product_attention``, where all of it is understood."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from awp_lint.detector.finding import Edit, Effect, Fix, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.attention.pattern import Attention, Step, What, einsum_applies, product
from awp_lint.rules.common import argument, method
from awp_lint.rules.nodemap import Definition

_NUMBER_NAMES = re.compile(r"scal|dim|d_k|d_head|d_kv|sqrt|norm|inv|temperature|hidden_size|factor", re.IGNORECASE)
_LINE = 110


_SHAPES = "on H100 and B200: lengths repeat, or cuDNN's attention is off (a plan for every new shape, see AWP009)"


class _NotUnderstood(Exception):
    """Some part has no counterpart in the fused call."""


@dataclass(slots=True)
class _Arguments:
    mask: str | None = None
    scale: list[str] = field(default_factory=list)
    dropout: str | None = None
    requires: list[str] = field(default_factory=list)


def fused_call(attention: Attention, definition: Definition) -> Fix | None:
    """The rewrite, or None where some step is not understood."""
    import libcst as cst

    view = definition.view
    torch = definition.file.target.torch
    if attention.weights_kept or not attention.key_transposed or (torch is not None and torch < (2, 1)):
        return None
    # The trees must agree on the three calls that carry the pattern.
    for node in (attention.scores, attention.output):
        if not isinstance(definition.node(node), cst.BinaryOperation | cst.Call):
            return None
    if not isinstance(definition.node(attention.softmax), cst.Call):
        return None
    try:
        _check_output(attention, view)
        statements = _block(attention, view)
        arguments = _arguments(attention, definition)
    except _NotUnderstood:
        return None
    edits = _edits(attention, statements, _call(attention, arguments, definition), definition)
    return Fix(
        title="call `F.scaled_dot_product_attention` instead",
        safety=Safety.UNSAFE,
        edits=edits,
        effects=(Effect.NUMERICS,),
        requires=(*arguments.requires, _SHAPES),
    )


def _check_output(attention: Attention, view: FunctionView) -> None:
    output = attention.output
    if isinstance(output, ast.Call) and getattr(output.func, "attr", getattr(output.func, "id", "")) == "einsum":
        if not einsum_applies(output):
            raise _NotUnderstood
        return
    pair = product(output, view)
    if pair is None or pair[1] is not attention.value:
        raise _NotUnderstood  # the weights are the right operand


def _block(attention: Attention, view: FunctionView) -> list[ast.stmt]:
    """The statements to replace: neighbours in one block, and nothing else uses the names they bind."""
    last = view.statement(attention.output)
    own = {id(s) for s in attention.statements}
    block = _block_of(last, view)
    top: list[ast.stmt] = []
    for statement in block:
        inner = [s for s in ast.walk(statement) if isinstance(s, ast.stmt)]
        if any(id(s) in own for s in inner):
            if not all(id(s) in own for s in inner if not (s is statement and isinstance(s, ast.If))):
                raise _NotUnderstood
            top.append(statement)
    if not top or top[-1] is not last or any(id(s) in own for s in attention.statements if not _within(s, top)):
        raise _NotUnderstood
    first = next(i for i, s in enumerate(block) if s is top[0])
    if block[first : first + len(top)] != top:
        raise _NotUnderstood
    lines = [(s.lineno, s.end_lineno or s.lineno) for s in top]
    if any(a[1] >= b[0] for a, b in itertools.pairwise(lines)):
        raise _NotUnderstood  # two statements on one line
    for name in attention.names:
        for use in view.uses(name):
            if not _within(use, top):
                raise _NotUnderstood
    return top


def _within(node: ast.AST, statements: Sequence[ast.stmt]) -> bool:
    line = getattr(node, "lineno", 0)
    return any(s.lineno <= line <= (s.end_lineno or s.lineno) for s in statements)


def _block_of(statement: ast.stmt, view: FunctionView) -> list[ast.stmt]:
    parent = view.parent(statement) or view.node
    for name in ("body", "orelse", "finalbody"):
        block = getattr(parent, name, None)
        if isinstance(block, list) and any(s is statement for s in block):
            return block
    raise _NotUnderstood


def _arguments(attention: Attention, definition: Definition) -> _Arguments:
    result = _Arguments()
    for step in attention.before:
        if step.what is What.CAST:
            continue
        if step.what in (What.SCALE, What.DIVIDE):
            if step.conditional or result.mask is not None or step.value is None:
                raise _NotUnderstood
            result.scale.append(_scale(step, step.value, definition))
        elif step.what in (What.ADD, What.FILL, What.KEEP):
            if result.mask is not None:
                raise _NotUnderstood
            result.mask = _mask(step, definition, result.requires)
        else:
            raise _NotUnderstood
    for step in attention.after:
        if step.what is What.DROPOUT and isinstance(step.node, ast.Call) and result.dropout is None:
            result.dropout = _dropout(step.node, definition)
        elif step.what is not What.CAST:
            raise _NotUnderstood
    return result


def _scale(step: Step, value: ast.expr, definition: Definition) -> str:
    kind = definition.view.value(value).kind
    if kind is not Kind.SCALAR and not (kind is Kind.UNKNOWN and _NUMBER_NAMES.search(definition.text(value))):
        raise _NotUnderstood
    text = definition.text(value)
    atom = isinstance(value, ast.Name | ast.Attribute | ast.Call | ast.Constant)
    if step.what is What.DIVIDE:
        return f"1.0 / {text}" if atom else f"1.0 / ({text})"
    return text if atom or isinstance(value, ast.BinOp) else f"({text})"


def _mask(step: Step, definition: Definition, requires: list[str]) -> str:
    source = step.value if step.what is What.ADD else step.mask
    if source is None:
        raise _NotUnderstood
    text = definition.text(source)
    if step.conditional and not _only_if_given(step, source, definition.view):
        raise _NotUnderstood
    if step.what is What.ADD:
        requires.append(f"`{text}` has the type of the queries")
        return text
    if step.value is None or not _is_lowest(step.value):
        raise _NotUnderstood
    requires.append("no query has all its keys masked")
    if step.what is What.FILL:
        text = _inverted(source, text)
    return f"None if {definition.text(source)} is None else {text}" if step.conditional else text


def _inverted(mask: ast.expr, text: str) -> str:
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        return text.removeprefix("~").strip()
    if isinstance(mask, ast.Compare) and len(mask.ops) == 1 and isinstance(mask.ops[0], ast.Eq):
        return text.replace("==", "!=", 1) if text.count("==") == 1 else f"~({text})"
    return f"~{text}" if isinstance(mask, ast.Name | ast.Attribute | ast.Call | ast.Subscript) else f"~({text})"


def _only_if_given(step: Step, mask: ast.expr, view: FunctionView) -> bool:
    """Whether the step stands under ``if mask is not None:`` alone."""
    parent = view.parent(view.statement(step.node))
    if not isinstance(parent, ast.If) or parent.orelse or not isinstance(mask, ast.Name | ast.Attribute):
        return False
    test = parent.test
    return (
        isinstance(test, ast.Compare)
        and len(test.ops) == 1
        and isinstance(test.ops[0], ast.IsNot)
        and isinstance(test.comparators[0], ast.Constant)
        and test.comparators[0].value is None
        and ast.dump(test.left) == ast.dump(mask)
    )


def _is_lowest(value: ast.expr) -> bool:
    """Minus infinity, the least number of a type, or a number so low that its weight is zero."""
    text = ast.unparse(value).replace(" ", "").replace('"', "'")
    if re.fullmatch(r"(float\('-inf'\)|-float\('inf'\)|-?(math|torch|np|numpy)\.inf|torch\.finfo\(.*\)\.min)", text):
        return not re.fullmatch(r"(math|torch|np|numpy)\.inf", text)
    try:
        number = ast.literal_eval(value)
    except ValueError:
        return False
    return isinstance(number, int | float) and number <= -1e4


def _dropout(call: ast.Call, definition: Definition) -> str:
    view = definition.view
    dotted = view.qualified(call.func) or ""
    if dotted in ("torch.nn.functional.dropout", "torch.dropout"):
        p, training = argument(call, 1, "p"), argument(call, 2, "training")
        rate = definition.text(p) if p is not None else "0.5"
        if training is None:
            return rate
        return f"{rate} if {definition.text(training)} else 0.0"
    owner = view.value(call.func)
    if owner.kind is Kind.MODULE and owner.cls == "torch.nn.Dropout" and isinstance(call.func, ast.Attribute):
        found = method(call)
        if found is not None and isinstance(found[0], ast.Name) and found[0].id == "self":
            return f"{definition.text(call.func)}.p if self.training else 0.0"
    raise _NotUnderstood


def _call(attention: Attention, arguments: _Arguments, definition: Definition) -> str:
    name = definition.torch_name("torch.nn.functional.scaled_dot_product_attention")
    scale = " * ".join(reversed(arguments.scale)) if arguments.scale else "1.0"
    parts = [definition.text(node) for node in (attention.query, attention.key, attention.value)]
    if arguments.mask is not None:
        parts.append(f"attn_mask={arguments.mask}")
    if arguments.dropout is not None:
        parts.append(f"dropout_p={arguments.dropout}")
    parts.append(f"scale={scale}")
    one = f"{name}({', '.join(parts)})"
    indent = definition.indent(attention.output)
    start = definition.range(attention.output)[0]
    column = start - definition.source.text.rfind("\n", 0, start) - 1
    if column + len(one) <= _LINE or "\n" in one:
        return one
    newline = definition.source.newline
    inner = "".join(f"{newline}{indent}    {part}," for part in parts)
    return f"{name}({inner}{newline}{indent})"


def _edits(attention: Attention, statements: list[ast.stmt], call: str, definition: Definition) -> tuple[Edit, ...]:
    """Drop the lines before the last statement and put the call in place of its product."""
    edits = []
    last = statements[-1]
    if len(statements) > 1:
        starts = definition.source.line_starts
        edits.append(Edit(starts[statements[0].lineno - 1], starts[last.lineno - 1], ""))
    edits.append(definition.replace(attention.output, call))
    return tuple(edits)
