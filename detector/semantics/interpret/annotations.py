"""What an annotation says about a value."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.interpret.classes import instance
from awp_lint.detector.semantics.interpret.machine import NONE, Machine
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, DTypeClass, Kind, Value, make

_P = Certainty.PROVEN
_TENSORS = {
    "Tensor": DTypeClass.UNKNOWN,
    "FloatTensor": DTypeClass.FLOAT,
    "HalfTensor": DTypeClass.FLOAT,
    "BFloat16Tensor": DTypeClass.FLOAT,
    "DoubleTensor": DTypeClass.FLOAT,
    "LongTensor": DTypeClass.INT,
    "IntTensor": DTypeClass.INT,
    "ByteTensor": DTypeClass.INT,
    "BoolTensor": DTypeClass.BOOL,
}
_SIMPLE: dict[str, Value] = {
    "int": make(Kind.SCALAR, dtype=DTypeClass.INT, certainty=_P),
    "float": make(Kind.SCALAR, dtype=DTypeClass.FLOAT, certainty=_P),
    "bool": make(Kind.SCALAR, dtype=DTypeClass.BOOL, certainty=_P),
    "complex": make(Kind.SCALAR, certainty=_P),
    "str": make(Kind.STRING, certainty=_P),
    "bytes": make(Kind.STRING, certainty=_P),
    "None": NONE,
    "list": make(Kind.SEQUENCE, certainty=_P),
    "List": make(Kind.SEQUENCE, certainty=_P),
    "tuple": make(Kind.SEQUENCE, certainty=_P),
    "Tuple": make(Kind.SEQUENCE, certainty=_P),
    "set": make(Kind.SEQUENCE, certainty=_P),
    "Sequence": make(Kind.SEQUENCE, certainty=_P),
    "dict": make(Kind.MAPPING, certainty=_P),
    "Dict": make(Kind.MAPPING, certainty=_P),
    "Mapping": make(Kind.MAPPING, certainty=_P),
    "OrderedDict": make(Kind.MAPPING, certainty=_P),
    "Callable": make(Kind.CALLABLE, certainty=_P),
    "Path": make(Kind.STRING, certainty=_P),
    "PathLike": make(Kind.STRING, certainty=_P),
    "Generator": make(Kind.GENERATOR, certainty=_P),
    "BatchEncoding": make(Kind.ENCODING, certainty=_P),
    "BatchFeature": make(Kind.ENCODING, certainty=_P),
    "Number": make(Kind.SCALAR, certainty=_P),
}
_SEQUENCES = frozenset(
    {
        "list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "FrozenSet", "Sequence", "MutableSequence",
        "Collection", "deque", "Deque",
    }
)  # fmt: skip
_ITERATORS = frozenset({"Iterable", "Iterator", "Generator", "AsyncIterator", "AsyncGenerator", "AsyncIterable"})
_MAPPINGS = frozenset({"dict", "Dict", "Mapping", "MutableMapping", "OrderedDict", "defaultdict", "DefaultDict"})
_WRAPPERS = frozenset({"Final", "ClassVar", "Annotated", "Required", "NotRequired", "ReadOnly"})
_JAXTYPING = {
    "Float": DTypeClass.FLOAT,
    "Float16": DTypeClass.FLOAT,
    "Float32": DTypeClass.FLOAT,
    "BFloat16": DTypeClass.FLOAT,
    "Int": DTypeClass.INT,
    "Int32": DTypeClass.INT,
    "Int64": DTypeClass.INT,
    "Integer": DTypeClass.INT,
    "Bool": DTypeClass.BOOL,
    "Shaped": DTypeClass.UNKNOWN,
    "Num": DTypeClass.UNKNOWN,
}


def tensor(m: Machine, dtype: DTypeClass = DTypeClass.UNKNOWN) -> Value:
    """An annotated tensor: it lives where the model is, as far as anyone knows."""
    return make(Kind.TENSOR, m.ambient, dtype, certainty=Certainty.ASSUMED)


def annotated(m: Machine, node: ast.expr | None, depth: int = 0) -> Value:
    """The value of a variable with this annotation; UNKNOWN where it says nothing."""
    if node is None or depth > 8:
        return UNKNOWN
    kind = node.__class__
    if kind is ast.Name or kind is ast.Attribute:
        return _named(m, node)
    if isinstance(node, ast.Constant):
        if node.value is None:
            return NONE
        if isinstance(node.value, str) and len(node.value) < 200:
            try:
                inner = ast.parse(node.value, mode="eval").body
            except (SyntaxError, ValueError, RecursionError):
                return UNKNOWN
            return annotated(m, inner, depth + 1)
        return UNKNOWN
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        return _union(m, [node.left, node.right], depth)
    if isinstance(node, ast.Subscript):
        return _generic(m, node, depth)
    return UNKNOWN


def _named(m: Machine, node: ast.expr) -> Value:
    short = node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""
    note_root(m, node)
    dtype = _TENSORS.get(short)
    if dtype is not None:
        dotted = m.names.qualified(node)
        if dotted is None or dotted.startswith("torch."):
            return tensor(m, dtype)
    simple = _SIMPLE.get(short)
    if simple is not None:
        return simple
    dotted = m.names.qualified(node)
    if dotted is None:
        return UNKNOWN
    if dotted == "torch.device":
        return make(Kind.DEVICE, m.ambient, certainty=Certainty.ASSUMED)
    if dotted == "torch.dtype":
        return make(Kind.DTYPE, certainty=_P)
    if dotted in ("torch.nn.Parameter", "torch.nn.parameter.Parameter"):
        return tensor(m, DTypeClass.FLOAT)
    if dotted == "numpy.ndarray":
        return make(Kind.NDARRAY, certainty=_P)
    return instance(m, m.outside.canonical(dotted), declared=True)


def note_root(m: Machine, node: ast.expr) -> None:
    """Note that the meaning of a chain of names is asked."""
    while isinstance(node, ast.Attribute):
        node = node.value
    if isinstance(node, ast.Name):
        m.asked.add(node.id)


def _union(m: Machine, members: list[ast.expr], depth: int) -> Value:
    values = [annotated(m, member, depth + 1) for member in members]
    known = [v for v in values if v.kind is not Kind.NONE]
    for kind in (Kind.TENSOR, Kind.DEVICE):
        for value in known:
            if value.kind is kind:
                return value
    if not known:
        return NONE
    first = known[0]
    if all(v.kind is first.kind for v in known):
        return first if len(known) == 1 else make(first.kind, first.device, certainty=Certainty.ASSUMED)
    return UNKNOWN


def _generic(m: Machine, node: ast.Subscript, depth: int) -> Value:
    base = node.value
    short = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
    inner = node.slice
    arguments = list(inner.elts) if isinstance(inner, ast.Tuple) else [inner]
    if short == "Optional" or short == "Union":
        return _union(m, arguments, depth)
    if short in _WRAPPERS:
        return annotated(m, arguments[0], depth + 1) if arguments else UNKNOWN
    if short in _SEQUENCES:
        return _sequence(m, short, arguments, depth)
    if short in _MAPPINGS:
        element = annotated(m, arguments[1], depth + 1) if len(arguments) == 2 and not _mixed(arguments[1]) else None
        return make(Kind.MAPPING, element=_known(element), certainty=_P)
    if short in _ITERATORS:
        return make(Kind.ITERATOR, element=_known(annotated(m, arguments[0], depth + 1)), certainty=_P)
    if short in ("type", "Type"):
        target = annotated(m, arguments[0], depth + 1)
        return make(Kind.CLASS, cls=target.cls, certainty=_P) if target.cls else UNKNOWN
    if short == "Callable":
        return make(Kind.CALLABLE, certainty=_P)
    if short == "Unpack":
        return make(Kind.MAPPING, certainty=_P)
    if short == "Literal":
        first = arguments[0]
        if isinstance(first, ast.Constant) and isinstance(first.value, str):
            return _SIMPLE["str"]
        return UNKNOWN
    if short in _JAXTYPING:
        held = annotated(m, arguments[0], depth + 1)
        return tensor(m, _JAXTYPING[short]) if held.kind is Kind.TENSOR else held
    if short in ("ndarray", "NDArray"):
        return make(Kind.NDARRAY, certainty=_P)
    return UNKNOWN


#: What is no tensor, beside tensors in the same dictionary.
_PLAIN = frozenset(("int", "float", "bool", "str", "object", "Any"))


def _mixed(node: ast.expr) -> bool:
    """``torch.Tensor | int``: which values of a dictionary are tensors depends on the key."""
    if isinstance(node, ast.Subscript) and getattr(node.value, "id", getattr(node.value, "attr", "")) == "Union":
        return any(isinstance(part, ast.Name) and part.id in _PLAIN for part in ast.walk(node.slice))
    if not (isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)):
        return False
    return any((isinstance(side, ast.Name) and side.id in _PLAIN) or _mixed(side) for side in (node.left, node.right))


def _known(value: Value | None) -> Value | None:
    return None if value is None or value.kind is Kind.UNKNOWN else value


def _sequence(m: Machine, short: str, arguments: list[ast.expr], depth: int) -> Value:
    if short in ("tuple", "Tuple") and not (
        len(arguments) == 2 and isinstance(arguments[1], ast.Constant) and arguments[1].value is Ellipsis
    ):
        items = tuple(annotated(m, argument, depth + 1) for argument in arguments)
        if len(items) > 1:
            return make(Kind.SEQUENCE, items=items, certainty=_P)
    element = annotated(m, arguments[0], depth + 1) if arguments else None
    return make(Kind.SEQUENCE, element=_known(element), certainty=_P)
