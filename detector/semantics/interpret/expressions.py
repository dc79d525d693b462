"""One handler an expression type: what the expression may be on the current path."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.interpret import objects, tensors
from awp_lint.detector.semantics.interpret.choices import asks_for_accelerator, chosen, is_host
from awp_lint.detector.semantics.interpret.conventions import is_host_name
from awp_lint.detector.semantics.interpret.machine import (
    MAX_ITEMS,
    NONE,
    Machine,
    evaluate,
    expression,
    merge,
)
from awp_lint.detector.semantics.interpret.spelling import spell
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, join, make

_PROVEN = Certainty.PROVEN
_CONSTANTS: dict[type, Value] = {
    int: make(Kind.SCALAR, dtype=DTypeClass.INT, constant=True, certainty=_PROVEN),
    float: make(Kind.SCALAR, dtype=DTypeClass.FLOAT, constant=True, certainty=_PROVEN),
    bool: make(Kind.SCALAR, dtype=DTypeClass.BOOL, constant=True, certainty=_PROVEN),
    complex: make(Kind.SCALAR, constant=True, certainty=_PROVEN),
    bytes: make(Kind.STRING, constant=True, certainty=_PROVEN),
    type(None): NONE,
    type(Ellipsis): UNKNOWN,
}
_STRING = make(Kind.STRING, constant=True, certainty=_PROVEN)
_CUDA = make(Kind.STRING, Device.ACCELERATOR, constant=True, certainty=_PROVEN)
_CPU = make(Kind.STRING, Device.HOST, constant=True, certainty=_PROVEN)
_ACCELERATORS = frozenset({"cuda", "mps", "xpu", "npu", "hip", "xla", "tpu", "hpu", "auto", "musa", "mlu"})


_MASKS = (ast.BitOr, ast.BitAnd, ast.BitXor)


@expression(ast.Constant)
def _constant(m: Machine, node: ast.Constant) -> Value:
    content = node.value
    if content.__class__ is str:
        return device_string(m, content) if len(content) < 12 else _STRING
    return _CONSTANTS[content.__class__]


def device_string(m: Machine, text: str) -> Value:
    """A str constant, with the device that it names."""
    head = text.partition(":")[0]
    if head in _ACCELERATORS:
        return _CUDA if m.target.device != "cpu" else _CPU
    return _CPU if head == "cpu" else _STRING


@expression(ast.Name)
def _name(m: Machine, node: ast.Name) -> Value:
    name = node.id
    value = m.enclosing.get(name)
    if value is not None:
        return value
    return global_name(m, name, node)


def global_name(m: Machine, name: str, node: ast.expr) -> Value:
    """What a name means that this definition does not bind."""
    m.asked.add(name)
    value = m.globals.get(name)
    if value is None:
        dotted = m.names.qualified(node)
        value = objects.resolve(m, dotted) if dotted is not None else objects.builtin(name) or UNKNOWN
        m.globals[name] = value
    return value


@expression(ast.Attribute)
def _attribute(m: Machine, node: ast.Attribute) -> Value:
    base = node.value
    if base.__class__ is ast.Name and base.id == m.self_name:
        stored = m.env.get("self." + node.attr)
        m.table[base] = m.env.get(m.self_name, UNKNOWN)
        if stored is not None:
            return stored
    value = objects.attribute(m, evaluate(m, base), node.attr)
    if value.kind is Kind.TENSOR and value.device in (Device.AMBIENT, Device.UNKNOWN) and is_host_name(node.attr):
        return make(Kind.TENSOR, Device.HOST, value.dtype, value.rank, certainty=Certainty.ASSUMED)
    if value.kind is Kind.TENSOR and not value.reasons and not m.symbolic:
        return value.because(node.lineno, f"`{spell(node)}` is an attribute that holds a tensor")
    return value


@expression(ast.BinOp)
def _binop(m: Machine, node: ast.BinOp) -> Value:
    left = evaluate(m, node.left)
    right = evaluate(m, node.right)
    operator = node.op.__class__
    if operator is ast.Mod and left.kind is Kind.STRING:
        return tensors.STRING
    return tensors.binary(m, left, right, division=operator is ast.Div, bitwise=operator in _MASKS)


@expression(ast.UnaryOp)
def _unary(m: Machine, node: ast.UnaryOp) -> Value:
    value = evaluate(m, node.operand)
    if node.op.__class__ is ast.Not:
        return tensors.BOOL
    if value.kind is Kind.TENSOR:
        return tensors.like(value, None, value.rank)
    return value


@expression(ast.Compare)
def _compare(m: Machine, node: ast.Compare) -> Value:
    left = evaluate(m, node.left)
    result = tensors.BOOL
    for operator, comparator in zip(node.ops, node.comparators, strict=True):
        right = evaluate(m, comparator)
        if operator.__class__ in _ORDERING:
            result = tensors.compare(left, right)
        left = right
    return result if len(node.ops) == 1 else tensors.BOOL


_ORDERING = frozenset({ast.Eq, ast.NotEq, ast.Lt, ast.LtE, ast.Gt, ast.GtE})


@expression(ast.BoolOp)
def _boolop(m: Machine, node: ast.BoolOp) -> Value:
    from awp_lint.detector.semantics.interpret.narrowing import assume

    result: Value | None = None
    value = UNKNOWN
    before = m.env
    conjunction = isinstance(node.op, ast.And)
    for operand in node.values:
        value = evaluate(m, operand)
        result = value if result is None else join(result, value)
        if operand is not node.values[-1]:
            m.env = dict(m.env)
            assume(m, operand, conjunction)
    m.env = before if m.env is before else merge(before, {k: v for k, v in m.env.items() if k not in before})
    if conjunction and value.kind is Kind.TENSOR and result is not None and result.kind is not Kind.TENSOR:
        # `flag and n == 1 and tensor.any()`: what the conjunction gives, where the guards hold
        return tensors.like(value, None, value.rank) if value.certainty is not _PROVEN else _assumed(value)
    return result or UNKNOWN


def _assumed(v: Value) -> Value:
    return make(v.kind, v.device, v.dtype, v.rank, certainty=Certainty.ASSUMED, reasons=v.reasons)


@expression(ast.IfExp)
def _ifexp(m: Machine, node: ast.IfExp) -> Value:
    from awp_lint.detector.semantics.interpret.narrowing import assume

    evaluate(m, node.test)
    before = m.env
    m.env = dict(before)
    assume(m, node.test, True)
    body = evaluate(m, node.body)
    m.env = dict(before)
    assume(m, node.test, False)
    other = evaluate(m, node.orelse)
    m.env = before
    if body.kind in (Kind.STRING, Kind.DEVICE) and asks_for_accelerator(node.test):
        # "cuda" if torch.cuda.is_available() else "cpu": the code means to run on the accelerator where there is one
        for v in (body, other):
            if v.device is Device.ACCELERATOR:
                return v
    for host, beside in ((node.body, other), (node.orelse, body)):
        if is_host(host):
            return chosen(node.test, body if host is node.body else other, beside) or join(body, other)
    return join(body, other)


@expression(ast.Subscript)
def _subscript(m: Machine, node: ast.Subscript) -> Value:
    value = evaluate(m, node.value)
    index = node.slice
    kind = value.kind
    if kind is Kind.TENSOR:
        return _index_tensor(m, value, index)
    if index.__class__ is ast.Constant:
        key = index.value
        m.table[index] = _constant(m, index)
        if key.__class__ is str:
            return objects.key(m, value, key)
        if key.__class__ is int:
            return objects.item(m, value, key)
    at = evaluate(m, index)
    if index.__class__ is ast.UnaryOp and isinstance(index.operand, ast.Constant):
        key = index.operand.value
        if key.__class__ is int:
            return objects.item(m, value, -key)
    if index.__class__ is ast.Slice:
        if kind is Kind.SEQUENCE:
            if value.items is None:
                return value
            return make(Kind.SEQUENCE, element=tensors.joined(value.items), certainty=value.certainty)
        return value if kind in (Kind.STRING, Kind.NDARRAY) else tensors.deferred(value, "[:]")
    if kind is Kind.MAPPING or kind is Kind.ENCODING:
        return tensors.contents(value)
    if kind is Kind.NDARRAY:
        return tensors.NDARRAY
    if kind is Kind.STRING:
        return tensors.STRING
    if kind is Kind.CALLABLE or kind is Kind.CLASS:
        return value  # kernels launched over a grid, generic classes
    if kind is Kind.UNKNOWN and at.kind is Kind.TENSOR and value.cls is None and m.torchy:
        return tensors.like(at, DTypeClass.UNKNOWN) if at.device is not Device.HOST else UNKNOWN
    return tensors.element(value)


def _index_tensor(m: Machine, v: Value, index: ast.expr) -> Value:
    rank = v.rank
    parts = index.elts if isinstance(index, ast.Tuple) else [index]
    view = True
    advanced: int | None = -1  # the highest rank among tensor indices
    for part in parts:
        kind = part.__class__
        if kind is ast.Slice:
            evaluate(m, part)
            continue
        at = evaluate(m, part)
        if at.kind is Kind.NONE:
            rank = None if rank is None else rank + 1
        elif at.kind is Kind.SCALAR:
            rank = None if rank is None else rank - 1
        elif at.kind is Kind.TENSOR:
            view = False
            if at.dtype is DTypeClass.INT and at.rank is not None and advanced is not None:
                advanced = max(advanced, at.rank)
                rank = None if rank is None else rank - 1
            else:
                advanced = None
        elif isinstance(part, ast.Constant) and part.value is Ellipsis:
            continue
        else:
            rank = None
            view = False
    if isinstance(index, ast.Tuple):
        m.table[index] = tensors.SEQUENCE
    if advanced is None:
        rank = None
    elif advanced >= 0 and rank is not None:
        rank += advanced
    if rank is not None and rank < 0:
        rank = None
    return tensors.like(v, None, rank, not view)


@expression(ast.Slice)
def _slice(m: Machine, node: ast.Slice) -> Value:
    for bound in (node.lower, node.upper, node.step):
        if bound is not None:
            evaluate(m, bound)
    return UNKNOWN


@expression(ast.Tuple, ast.List, ast.Set)
def _display(m: Machine, node: ast.Tuple | ast.List | ast.Set) -> Value:
    items: list[Value] = []
    exact = True
    constant = True
    for part in node.elts:
        if isinstance(part, ast.Starred):
            held = evaluate(m, part.value)
            if held.kind is Kind.SEQUENCE and held.items is not None:
                items.extend(held.items)
            else:
                exact = False
                items.append(tensors.element(held))
        else:
            items.append(evaluate(m, part))
        constant = constant and items != [] and items[-1].constant
    if not exact or len(items) > 16 or (node.__class__ is not ast.Tuple and len(items) > MAX_ITEMS):
        return make(Kind.SEQUENCE, element=tensors.joined(items), constant=constant, fresh=True, certainty=_PROVEN)
    if not items and node.__class__ is not ast.Tuple:  # a list or set that is filled later
        return make(Kind.SEQUENCE, fresh=True, constant=True, certainty=_PROVEN)
    return make(Kind.SEQUENCE, items=tuple(items), constant=constant, fresh=True, certainty=_PROVEN)


@expression(ast.Dict)
def _dict(m: Machine, node: ast.Dict) -> Value:
    values: list[Value] = []
    for name, content in zip(node.keys, node.values, strict=True):
        value = evaluate(m, content)
        if name is None:
            values.append(value.element or UNKNOWN)
        else:
            evaluate(m, name)
            values.append(value)
    held = tensors.joined(values)
    if held is not None and held == UNKNOWN:
        held = None
    return make(Kind.MAPPING, element=held, fresh=True, certainty=_PROVEN)


@expression(ast.JoinedStr)
def _joined(m: Machine, node: ast.JoinedStr) -> Value:
    first: Value | None = None
    for part in node.values[:1] if m.symbolic else node.values:
        value = evaluate(m, part)
        first = first or value
    if first is not None and first.device is not Device.UNKNOWN and first.constant and m.target.device != "cpu":
        return make(Kind.STRING, first.device, certainty=_PROVEN)
    return tensors.STRING


@expression(ast.FormattedValue)
def _formatted(m: Machine, node: ast.FormattedValue) -> Value:
    evaluate(m, node.value)
    if node.format_spec is not None:
        evaluate(m, node.format_spec)
    return tensors.STRING


@expression(ast.NamedExpr)
def _walrus(m: Machine, node: ast.NamedExpr) -> Value:
    value = evaluate(m, node.value)
    m.bind(node.target.id, value)
    m.table[node.target] = value
    return value


@expression(ast.Lambda)
def _lambda(m: Machine, node: ast.Lambda) -> Value:
    before = m.env
    m.env = dict(before)
    arguments = node.args
    for default in (*arguments.defaults, *(d for d in arguments.kw_defaults if d is not None)):
        evaluate(m, default)
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        m.env[argument.arg] = UNKNOWN
    body = evaluate(m, node.body)
    m.env = before
    return make(Kind.CALLABLE, element=body if body != UNKNOWN else None, certainty=_PROVEN)


@expression(ast.ListComp, ast.SetComp, ast.GeneratorExp)
def _comprehension(m: Machine, node: ast.ListComp | ast.SetComp | ast.GeneratorExp) -> Value:
    before = m.env
    m.env = dict(before)
    _generators(m, node.generators)
    held = evaluate(m, node.elt)
    m.env = before
    kind = Kind.ITERATOR if node.__class__ is ast.GeneratorExp else Kind.SEQUENCE
    return make(kind, element=None if held == UNKNOWN else held, fresh=True, certainty=_PROVEN)


@expression(ast.DictComp)
def _dictcomp(m: Machine, node: ast.DictComp) -> Value:
    before = m.env
    m.env = dict(before)
    _generators(m, node.generators)
    evaluate(m, node.key)
    held = evaluate(m, node.value)
    m.env = before
    return make(Kind.MAPPING, element=None if held == UNKNOWN else held, fresh=True, certainty=_PROVEN)


def _generators(m: Machine, generators: list[ast.comprehension]) -> None:
    from awp_lint.detector.semantics.interpret.narrowing import assume
    from awp_lint.detector.semantics.interpret.statements import assign

    for generator in generators:
        source = iterated(m, generator.iter)
        assign(m, generator.target, source)
        for test in generator.ifs:
            evaluate(m, test)
            assume(m, test, True)


def iterated(m: Machine, node: ast.expr) -> Value:
    """What a loop over this expression binds; ``items()`` of a mapping keeps its values."""
    return tensors.element(evaluate(m, node))


@expression(ast.Await)
def _await(m: Machine, node: ast.Await) -> Value:
    return evaluate(m, node.value)


@expression(ast.Yield)
def _yield(m: Machine, node: ast.Yield) -> Value:
    m.yielded.append(evaluate(m, node.value) if node.value is not None else NONE)
    return UNKNOWN


@expression(ast.YieldFrom)
def _yield_from(m: Machine, node: ast.YieldFrom) -> Value:
    m.yielded.append(tensors.element(evaluate(m, node.value)))
    return UNKNOWN


@expression(ast.Starred)
def _starred(m: Machine, node: ast.Starred) -> Value:
    return evaluate(m, node.value)
