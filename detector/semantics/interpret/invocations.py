"""Call expressions: their arguments, what they return and what they change."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.interpret import calls, objects, results, tensors
from awp_lint.detector.semantics.interpret.conventions import is_host_name
from awp_lint.detector.semantics.interpret.machine import (
    MAX_ITEMS,
    MAX_STEPS,
    Args,
    Budget,
    Keywords,
    Machine,
    evaluate,
    expression,
    store,
)
from awp_lint.detector.semantics.interpret.spelling import spell
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, Kind, Value, join, make
from awp_lint.detector.semantics.values import held as values_held


def _of_method_around(m: Machine, name: str) -> bool:
    """Whether a function within a method means the method's own object."""
    return name == "self" and name in m.enclosing


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
        if base.__class__ is ast.Name and (base.id == m.self_name or _of_method_around(m, base.id)):
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
            result = calls.call(m, callee, operands, keywords)
        else:
            result = calls.method(m, receiver, name, operands, keywords)
            if receiver.kind in _MUTABLE:
                _mutate(m, function.value, receiver, name, operands)
    else:
        result = calls.call(m, callee, operands, keywords)
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
    elif result.kind in (Kind.TENSOR, Kind.SEQUENCE) and (_told_host(function) or _of_host(m, callee, operands)):
        result = _on_host(result)
    elif result.kind is Kind.TENSOR and not result.reasons:
        result = result.because(node.lineno, f"returned by {spell(function)}(...)")
    if callee.cls is not None and callee.kind is Kind.CALLABLE:
        if callee.cls == "torch.set_default_device":
            _set_default(m, operands)
        elif callee.cls.startswith("torch.distributed.") and operands:
            _collective(m, node, operands[0])
    return result


def _on_host(value: Value) -> Value:
    """A tensor, or a sequence of tensors, that is on the host where nothing proves otherwise."""
    if value.kind is Kind.TENSOR and value.device in (Device.AMBIENT, Device.UNKNOWN):
        return make(Kind.TENSOR, Device.HOST, value.dtype, value.rank, certainty=Certainty.ASSUMED)
    if value.kind is Kind.SEQUENCE and value.items is None and value.element is not None:
        return make(Kind.SEQUENCE, element=_on_host(value.element), certainty=value.certainty)
    return value


def _told_host(function: ast.expr) -> bool:
    """``get_lengths_cpu(…)``."""
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    return is_host_name(name)


def _of_host(m: Machine, callee: Value, operands: Args) -> bool:
    """Whether a function that is defined in this one is given nothing but tensors on the host."""
    if callee.kind is not Kind.CALLABLE or callee.cls is None or not operands:
        return False
    inner = callee.cls.startswith(f"{m.names.module}.{m.qualname}.")
    return inner and all(v.kind is Kind.TENSOR and v.device is Device.HOST for v in operands)


_NAMED = (Kind.CALLABLE, Kind.EXTERNAL, Kind.CLASS)


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
    elif (
        callee.kind in (Kind.CALLABLE, Kind.EXTERNAL, Kind.CLASS)
        and callee.cls.partition(".")[0] not in objects.FOREIGN
    ):
        m.calls.append((callee.cls, operands, keywords))


_MUTABLE = frozenset({Kind.SEQUENCE, Kind.MODULE, Kind.MAPPING})


def _set_default(m: Machine, operands: Args) -> None:
    place = results.place(m, operands[0]) if operands else None
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
        store(m, target, calls.moved(m, v, name, operands, {}))


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
