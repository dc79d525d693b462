"""What parameters hold on entry: annotations first, then call sites, defaults and, last, names."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.definition import descendants, is_none
from awp_lint.detector.semantics.interpret.annotations import annotated
from awp_lint.detector.semantics.interpret.classes import instance
from awp_lint.detector.semantics.interpret.conventions import (
    TENSORS,
    forward_parameter,
    host_value,
    is_host_name,
    parameter,
)
from awp_lint.detector.semantics.interpret.machine import Machine
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Reason, Value, make

# What these are given lives where the model is: their call sites say no more.
_FED_BY_MODELS = (".forward", ".__call__")


# An annotation that names these as well allows for something else than a tensor.
_OTHERS = frozenset(
    {"int", "float", "bool", "str", "list", "List", "tuple", "Tuple", "Sequence", "Any", "dict", "Dict"}
)


#: Parameters that switch something, however they are annotated.
_FLAG = re.compile(r"(output|return|use|do|need|should)_")


def _holds_numbers(v: Value) -> bool:
    """Whether a sequence holds no tensors, as far as is known."""
    held = [v.element] if v.element is not None else [*(v.items or ())]
    numbers = (Kind.SCALAR, Kind.NONE)
    return all(item.kind in numbers or (item.kind is Kind.SEQUENCE and _holds_numbers(item)) for item in held)


_NUMBERS = frozenset({"int", "float", "bool"})


def _words(annotation: ast.expr) -> set[str]:
    return {
        node.id if isinstance(node, ast.Name) else node.attr
        for node in descendants(annotation)
        if isinstance(node, (ast.Name, ast.Attribute))
    }


def bind_parameters(m: Machine, node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> None:
    """Bind every parameter of a definition."""
    arguments = node.args
    positional = [*arguments.posonlyargs, *arguments.args]
    defaults: list[ast.expr | None] = [None] * (len(positional) - len(arguments.defaults))
    defaults.extend(arguments.defaults)
    pairs = [*zip(positional, defaults, strict=True), *zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)]
    method = m.cls is not None and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not _static(node)
    function = f"{m.names.module}.{m.qualname}"
    for position, (argument, default) in enumerate(pairs):
        if position == 0 and method and positional:
            assert m.cls is not None
            if _class_method(node):
                m.bind(argument.arg, make(Kind.CLASS, cls=m.cls, certainty=Certainty.PROVEN))
            else:
                m.self_name = argument.arg
                m.bind(argument.arg, instance(m, m.cls, declared=True))
            continue
        m.bind(argument.arg, _value(m, function, argument, default))
    if arguments.vararg is not None:
        held = annotated(m, arguments.vararg.annotation)
        m.bind(
            arguments.vararg.arg,
            make(Kind.SEQUENCE, element=held if held != UNKNOWN else None, certainty=Certainty.PROVEN),
        )
    if arguments.kwarg is not None:
        m.bind(arguments.kwarg.arg, make(Kind.MAPPING, certainty=Certainty.PROVEN))


def _decorated(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda, name: str) -> bool:
    if isinstance(node, ast.Lambda):
        return False
    return any(isinstance(d, ast.Name) and d.id == name for d in node.decorator_list)


def _static(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return _decorated(node, "staticmethod")


def _class_method(node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda) -> bool:
    return _decorated(node, "classmethod")


def _value(m: Machine, function: str, argument: ast.arg, default: ast.expr | None) -> Value:
    name = argument.arg
    declared = annotated(m, argument.annotation)
    if declared.kind is Kind.TENSOR:
        found = _tensor(m, function, argument, declared)
        if argument.annotation is not None and _OTHERS.isdisjoint(_words(argument.annotation)):
            m.declared[name] = found
        return found
    if declared.kind in (Kind.DEVICE, Kind.STRING) and not m.symbolic and name.endswith("device"):
        given = m.outside.parameter(function, name)
        if given is not None and given.kind in (Kind.DEVICE, Kind.STRING) and given.device is Device.HOST:
            return given
    if (
        declared.kind is Kind.SEQUENCE
        and not m.symbolic
        and declared.element is not None
        and declared.element.is_tensor
    ):
        given = m.outside.parameter(function, name)
        held = given.element if given is not None and given.kind is Kind.SEQUENCE else None
        if given is not None and held is not None and held.is_tensor and held.on_host:
            return given  # all calls pass tensors that lie on the host
    if declared != UNKNOWN and declared.kind is not Kind.NONE:
        return declared
    usual = None if _holds_others(argument.annotation) or _of_library(m, argument.annotation) else _by_name(m, argument)
    settled = usual is not None and (m.symbolic or function.endswith(_FED_BY_MODELS))
    passed = None if settled else m.outside.parameter(function, name)
    if passed is not None and passed != UNKNOWN:
        return passed
    if isinstance(default, ast.Constant) and default.value is not None and default.value is not Ellipsis:
        content = default.value
        if isinstance(content, bool):
            return make(Kind.SCALAR, dtype=DTypeClass.BOOL, certainty=Certainty.ASSUMED)
        if isinstance(content, int):
            return make(Kind.SCALAR, dtype=DTypeClass.INT, certainty=Certainty.ASSUMED)
        if isinstance(content, float):
            return make(Kind.SCALAR, dtype=DTypeClass.FLOAT, certainty=Certainty.ASSUMED)
        if isinstance(content, str):
            return make(Kind.STRING, certainty=Certainty.ASSUMED)
    return usual or UNKNOWN


_CONTAINERS = frozenset(
    ("dict", "list", "tuple", "set", "Dict", "List", "Tuple", "Mapping", "MutableMapping", "Sequence", "Iterable")
)


def _holds_others(annotation: ast.expr | None) -> bool:
    """Whether a parameter is declared as a container, or as one of several: its name then tells of what it holds."""
    if isinstance(annotation, ast.BinOp) and isinstance(annotation.op, ast.BitOr):
        members = [annotation.left, annotation.right]
    elif isinstance(annotation, ast.Subscript) and _short(annotation.value) in ("Optional", "Union"):
        inner = annotation.slice
        members = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    else:
        outer = annotation.value if isinstance(annotation, ast.Subscript) else annotation
        return _short(outer) in _CONTAINERS
    none = [m for m in members if is_none(m)]
    return len(none) < len(members) and all(_holds_others(member) for member in members if member not in none)


#: Where the names of types come from that may be tensors, and parts of such names.
_TYPES = frozenset(("torch", "typing", "typing_extensions", "jaxtyping", "torchtyping", "collections", "builtins"))
_MAYBE_TENSOR = re.compile(r"Tensor|Array|Any|^[A-Z]\w{0,2}$")


def _of_library(m: Machine, annotation: ast.expr | None) -> bool:
    """Whether a parameter is declared as an object of another library's class, which is no tensor."""
    if not isinstance(annotation, (ast.Name, ast.Attribute)):
        return False
    dotted = m.names.qualified(annotation)
    root, dot, _ = (dotted or "").partition(".")
    if dotted is None or not dot or root in _TYPES or root == m.names.module.partition(".")[0]:
        return False
    short = _short(annotation)
    return short[:1].isupper() and not short.isupper() and _MAYBE_TENSOR.search(short) is None


def _short(node: ast.expr | None) -> str:
    return node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "")


def _by_name(m: Machine, argument: ast.arg) -> Value | None:
    """What the parameter's name says, which is more in a module's ``forward``."""
    if not m.torchy or _FLAG.match(argument.arg):
        return None
    found = parameter(argument.arg, m.ambient, argument.lineno)
    if found is None and m.cls is not None and m.qualname.endswith(".forward"):
        return forward_parameter(argument.arg, m.ambient, argument.lineno)
    return found


def _tensor(m: Machine, function: str, argument: ast.arg, declared: Value) -> Value:
    name = argument.arg
    dtype = declared.dtype if declared.dtype is not DTypeClass.UNKNOWN else TENSORS.get(name, DTypeClass.UNKNOWN)
    if is_host_name(name):
        return host_value(name, dtype)
    if _FLAG.match(name):
        return make(Kind.SCALAR, dtype=DTypeClass.BOOL, certainty=Certainty.ASSUMED)
    numbers = argument.annotation is not None and not _NUMBERS.isdisjoint(_words(argument.annotation))
    fed = function.endswith(_FED_BY_MODELS) and not (numbers and not m.symbolic)
    passed = None if fed else m.outside.parameter(function, name)
    if passed is not None and passed.kind is Kind.SEQUENCE and _holds_numbers(passed):
        return passed  # what is annotated as a tensor and called with a list of sizes
    if passed is not None and passed.kind is Kind.TENSOR and passed.device in (Device.HOST, Device.ACCELERATOR):
        return passed
    certainty = Certainty.ASSUMED
    if passed is not None and passed.kind in (Kind.SCALAR, Kind.SEQUENCE, Kind.STRING):
        certainty = Certainty.UNKNOWN  # declared as a tensor, and everybody passes something else
    if numbers and not m.symbolic and name not in TENSORS and (passed is None or passed == UNKNOWN):
        certainty = Certainty.UNKNOWN  # a number as well as a tensor, and nothing shows which
    reasons = (Reason(argument.lineno, f"parameter `{name}`, annotated as a tensor"),)
    return make(Kind.TENSOR, declared.device, dtype, None, certainty=certainty, reasons=reasons)
