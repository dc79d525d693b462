"""One handler an expression type: what the expression may be on the current path."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.interpret import objects, tensors
from awp_lint.detector.semantics.interpret.conventions import is_host_name
from awp_lint.detector.semantics.interpret.machine import (
    MAX_STEPS,
    NONE,
    Args,
    Budget,
    Keywords,
    Machine,
    evaluate,
    expression,
    merge,
)
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Reason, Value, join, make
from awp_lint.detector.semantics.values import held as values_held

_PROVEN = Certainty.PROVEN
MAX_ITEMS = 8  # of a list whose items are kept apart
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
_META = make(Kind.STRING, Device.UNKNOWN, constant=True, certainty=_PROVEN)
_ACCELERATORS = frozenset({"cuda", "mps", "xpu", "npu", "hip", "xla", "tpu", "hpu", "auto", "musa", "mlu"})


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
    if value.kind is Kind.TENSOR and not value.reasons and not m.symbolic:
        return value.because(node.lineno, f"`{spell(node)}` is an attribute that holds a tensor")
    return value


@expression(ast.Call)
def _call(m: Machine, node: ast.Call) -> Value:
    m.steps += 1
    if m.steps > MAX_STEPS:
        raise Budget
    operands: Args = []
    function = node.func
    receiver: Value | None = None
    callee: Value
    if function.__class__ is ast.Attribute:
        base = function.value
        if base.__class__ is ast.Name and base.id == m.self_name:
            callee = evaluate(m, function)
            receiver = None
        else:
            receiver = evaluate(m, base)
            callee = UNKNOWN
    else:
        callee = evaluate(m, function)
    for argument in node.args:
        if argument.__class__ is ast.Starred:
            held = evaluate(m, argument.value)
            if held.kind is Kind.SEQUENCE and held.items is not None:
                operands.extend(held.items)
            else:
                operands.append(tensors.element(held))
        else:
            operands.append(evaluate(m, argument))
    keywords: Keywords = {}
    for keyword in node.keywords:
        value = evaluate(m, keyword.value)
        if keyword.arg is not None:
            keywords[keyword.arg] = value
    if receiver is not None and isinstance(function, ast.Attribute):
        name = function.attr
        if receiver.kind is Kind.EXTERNAL:
            callee = objects.resolve(m, f"{receiver.cls}.{name}")
            m.table[function] = callee
            result = objects.call(m, callee, operands, keywords)
        else:
            result = objects.method(m, receiver, name, operands, keywords)
            if receiver.kind in _MUTABLE:
                _mutate(m, function.value, receiver, name, operands)
    else:
        result = objects.call(m, callee, operands, keywords)
        if callee.cls == "builtins.getattr" and len(node.args) > 1:
            result = _getattr(m, node, operands)
        elif callee.cls == "builtins.setattr" and len(operands) == 3:
            _register(m, node.args[0], node.args[1], operands[2])
        elif function.__class__ is ast.Attribute and function.attr in _REGISTERING and len(operands) > 1:
            held = operands[1]
            if function.attr != "add_module" and held.kind is not Kind.NONE:
                held = make(Kind.TENSOR, m.ambient, held.dtype, held.rank, certainty=Certainty.ASSUMED)
            _register(m, function.value, node.args[0], held)
        elif callee.cls == "builtins.super":
            result = m.env.get(m.self_name, UNKNOWN) if m.self_name else UNKNOWN
    if m.symbolic and (operands or keywords):
        _note(m, callee, receiver, function, operands, keywords)
    elif result.kind is Kind.TENSOR and not result.reasons:
        result = result.because(node.lineno, f"returned by {spell(function)}(...)")
    if callee.cls is not None and callee.kind is Kind.CALLABLE:
        if callee.cls == "torch.set_default_device":
            _set_default(m, operands)
        elif callee.cls.startswith("torch.distributed.") and operands:
            _collective(m, node, operands[0])
    return result


def _note(
    m: Machine, callee: Value, receiver: Value | None, function: ast.expr, operands: Args, keywords: Keywords
) -> None:
    """Keep the arguments of a call that may reach a function of the project."""
    if receiver is not None and receiver.kind is Kind.UNKNOWN:
        if (
            receiver.cls is not None
            and isinstance(function, ast.Attribute)
            and "." not in receiver.cls.rpartition(">")[2]
        ):
            m.calls.append((f"{receiver.cls}.{function.attr}", operands, keywords))
        return
    if callee.cls is None:
        return
    if callee.kind is Kind.UNKNOWN:
        if callee.cls.startswith("<") and callee.cls.count(".", callee.cls.index(">")) == 1:
            m.calls.append((callee.cls, operands, keywords))
    elif callee.kind in (Kind.CALLABLE, Kind.EXTERNAL) and callee.cls.partition(".")[0] not in objects.FOREIGN:
        m.calls.append((callee.cls, operands, keywords))


_MUTABLE = frozenset({Kind.SEQUENCE, Kind.MODULE, Kind.MAPPING})


def spell(node: ast.expr) -> str:
    """A dotted chain as written; what is not a name is written out when it is short, else ``…``."""
    parts: list[str] = []
    while isinstance(node, ast.Attribute):
        parts.append(node.attr)
        node = node.value
    parts.append(node.id if isinstance(node, ast.Name) else _short(node))
    return ".".join(reversed(parts))


_SHORT = 40  # characters of an expression that a reason repeats
_SMALL = 12  # nodes of one that is worth writing out


def _short(node: ast.expr) -> str:
    for count, _ in enumerate(ast.walk(node)):
        if count > _SMALL:
            return "…"
    text = ast.unparse(node)
    if len(text) > _SHORT:
        return "…"
    return text if isinstance(node, ast.Call | ast.Subscript) else f"({text})"


def _set_default(m: Machine, operands: Args) -> None:
    place = tensors.place(m, operands[0]) if operands else None
    m.default_device = None if place is None else make(Kind.DEVICE, place[0], certainty=place[1])


def _collective(m: Machine, node: ast.Call, v: Value) -> None:
    """A collective over a CPU process group says that its tensor lives on the host."""
    groups = [keyword.value for keyword in node.keywords if keyword.arg == "group"] or node.args[1:]
    if v.kind is Kind.TENSOR and any(spell(group).endswith(_CPU_GROUPS) for group in groups):
        store(m, node.args[0], make(Kind.TENSOR, Device.HOST, v.dtype, v.rank, certainty=Certainty.ASSUMED))


_CPU_GROUPS = ("cpu_group", "gloo_group")


def _mutate(m: Machine, target: ast.expr, v: Value, name: str, operands: Args) -> None:
    """Calls that change their receiver: ``items.append(x)``, ``model.cuda()``."""
    if v.kind is Kind.SEQUENCE:
        if name in ("append", "add") and operands:
            held = operands[-1]
        elif name == "extend" and operands:
            held = tensors.element(operands[-1])
        elif name == "insert" and len(operands) > 1:
            held = operands[1]
        else:
            return
        if name == "append" and len(v.items or ()) < MAX_ITEMS and (v.items is not None or v.element is None):
            items = (*(v.items or ()), held)  # a loop joins lists of several lengths to one element
            store(m, target, make(Kind.SEQUENCE, items=items, cls=v.cls, certainty=v.certainty))
            return
        before = values_held(v)
        after = held if before is None else join(before, held)
        store(m, target, make(Kind.SEQUENCE, element=after, cls=v.cls, certainty=v.certainty))
    elif v.kind is Kind.MODULE and name in ("to", "cuda", "cpu"):
        store(m, target, objects.moved(m, v, name, operands, {}))


def store(m: Machine, target: ast.expr, value: Value) -> None:
    """Assign to a name or to ``self.x``; other targets keep no value of their own."""
    if isinstance(target, ast.Name):
        m.bind(target.id, value)
    elif isinstance(target, ast.Attribute) and isinstance(target.value, ast.Name) and target.value.id == m.self_name:
        m.bind("self." + target.attr, value)


_REGISTERING = frozenset({"register_buffer", "register_parameter", "add_module", "register_module"})


def _register(m: Machine, owner: ast.expr, name: ast.expr, value: Value) -> None:
    """``self.register_buffer("x", …)`` and its like: an attribute of self by a literal name."""
    if isinstance(owner, ast.Name) and owner.id == m.self_name and isinstance(name, ast.Constant):
        m.bind("self." + str(name.value), value)


def _getattr(m: Machine, node: ast.Call, operands: Args) -> Value:
    name = node.args[1]
    if isinstance(name, ast.Constant) and isinstance(name.value, str):
        base = node.args[0]
        stored = None
        if isinstance(base, ast.Name) and base.id == m.self_name:
            stored = m.env.get("self." + name.value)
        return stored or objects.attribute(m, operands[0], name.value)
    return UNKNOWN


@expression(ast.BinOp)
def _binop(m: Machine, node: ast.BinOp) -> Value:
    left = evaluate(m, node.left)
    right = evaluate(m, node.right)
    operator = node.op.__class__
    if operator is ast.Mod and left.kind is Kind.STRING:
        return tensors.STRING
    return tensors.binary(m, left, right, division=operator is ast.Div, bitwise=operator is ast.BitOr)


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
    if body.kind in (Kind.STRING, Kind.DEVICE) and _availability(node.test):
        # "cuda" if torch.cuda.is_available() else "cpu": the code means to run on the accelerator where there is one
        for v in (body, other):
            if v.device is Device.ACCELERATOR:
                return v
    return join(body, other)


def _availability(test: ast.expr) -> bool:
    """Whether a condition asks if there is an accelerator."""
    for part in ast.walk(test):
        if isinstance(part, ast.Attribute) and part.attr in ("is_available", "device_count"):
            return True
        if isinstance(part, ast.Name) and ("cuda" in part.id or "gpu" in part.id):
            return True
    return False


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


def reason(v: Value, line: int, text: str) -> Value:
    """The value with a first reason, where it has none."""
    if v.kind is not Kind.TENSOR or v.reasons:
        return v
    return make(
        v.kind, v.device, v.dtype, v.rank, v.element, v.items, v.cls, v.constant, v.fresh, v.certainty,
        (Reason(line, text),),
    )  # fmt: skip


__all__ = ["device_string", "is_host_name", "iterated", "reason", "spell", "store"]
