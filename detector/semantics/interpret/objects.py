"""What names, attributes, keys and items mean, independent of where they stand in the source."""

from __future__ import annotations

import builtins

from awp_lint.detector.semantics.interpret import tensors
from awp_lint.detector.semantics.interpret.classes import kind_of_library
from awp_lint.detector.semantics.interpret.conventions import (
    OUTPUT_SEQUENCES,
    OUTPUT_TENSORS,
    TENSORS,
    is_host_name,
    named,
)
from awp_lint.detector.semantics.interpret.machine import Context
from awp_lint.detector.semantics.library.facts import lookup
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, make

_T = Kind.TENSOR
_PROVEN, _ASSUMED = Certainty.PROVEN, Certainty.ASSUMED
_BUILTINS = frozenset(dir(builtins))
# Libraries that are never a part of the project at hand: nothing to defer.
FOREIGN = frozenset({"torch", "numpy", "os", "re", "json", "math", "logging", "time", "warnings", "sys", "builtins"})

_DTYPES: dict[str, DTypeClass] = {
    **dict.fromkeys(("float", "float16", "float32", "float64", "bfloat16", "half", "double", "float8_e4m3fn",
                     "float8_e5m2", "complex64", "complex128"), DTypeClass.FLOAT),
    **dict.fromkeys(("int", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "long", "short"),
                    DTypeClass.INT),
    "bool": DTypeClass.BOOL,
}  # fmt: skip

# Attributes of tensors that are not tensors.
_TENSOR_FACTS: dict[str, Value] = {
    "shape": tensors.INTS,
    "ndim": tensors.INT,
    "is_cuda": tensors.BOOL,
    "is_cpu": tensors.BOOL,
    "is_meta": tensors.BOOL,
    "is_mps": tensors.BOOL,
    "is_xpu": tensors.BOOL,
    "is_sparse": tensors.BOOL,
    "is_quantized": tensors.BOOL,
    "is_leaf": tensors.BOOL,
    "is_nested": tensors.BOOL,
    "requires_grad": tensors.BOOL,
    "itemsize": tensors.INT,
    "nbytes": tensors.INT,
    "layout": make(Kind.INSTANCE, cls="torch.layout", certainty=_PROVEN),
    "names": tensors.SEQUENCE,
    "grad_fn": UNKNOWN,
    "output_nr": tensors.INT,
}
# Attributes of tensors that are tensors of the same place; True where the rank stays.
_TENSOR_VIEWS = {
    "T": True, "mT": True, "H": True, "mH": True, "data": True, "grad": True, "real": True, "imag": True,
    "indices": False, "values": False,
}  # fmt: skip


def external(dotted: str) -> Value:
    """A module or another thing that is known by its dotted name alone."""
    return make(Kind.EXTERNAL, cls=dotted, certainty=_PROVEN)


def resolve(context: Context, dotted: str) -> Value:
    """What a dotted name of the project or a library means."""
    value = context.dotted.get(dotted)
    if value is None:
        value = context.dotted[dotted] = _resolve(context, dotted)
    return value


def _resolve(context: Context, dotted: str) -> Value:
    root, _, rest = dotted.partition(".")
    if root == "torch":
        return _torch(context, dotted, rest)
    if root in ("numpy", "math", "builtins", "itertools"):
        if lookup(dotted, context.target) is not None:
            return make(Kind.CALLABLE, cls=dotted, certainty=_PROVEN)
        if root == "math" and rest in ("pi", "inf", "e", "nan"):
            return tensors.FLOAT
        return external(dotted)
    outside = context.outside
    name = outside.canonical(dotted)
    if outside.is_function(name):
        return make(Kind.CALLABLE, cls=name, certainty=_PROVEN)
    if outside.is_class(name):
        return make(Kind.CLASS, cls=name, certainty=_PROVEN)
    value = outside.global_value(name)
    if value is not None:
        return value
    if name.startswith(("torch.", "numpy.")):
        return resolve(context, name)
    if lookup(name, context.target) is not None:
        return make(Kind.CALLABLE, cls=name, certainty=_PROVEN)
    if kind_of_library(name) is not None and not context.symbolic:
        return make(Kind.CLASS, cls=name, certainty=_PROVEN)
    owner, _, last = name.rpartition(".")
    if owner and not context.symbolic:
        held = outside.global_value(owner)
        if held is not None:
            return attribute(context, held, last)
        if outside.is_class(owner):
            return attribute(context, make(Kind.CLASS, cls=owner, certainty=_PROVEN), last)
    return external(name)


def _torch(context: Context, dotted: str, rest: str) -> Value:
    if lookup(dotted, context.target) is not None:
        return make(Kind.CALLABLE, cls=dotted, certainty=_PROVEN)
    dtype = _DTYPES.get(rest)
    if dtype is not None:
        return make(Kind.DTYPE, dtype=dtype, certainty=_PROVEN)
    if dotted in ("torch.nn.ModuleList", "torch.nn.ParameterList", "torch.nn.ModuleDict", "torch.nn.ParameterDict"):
        return make(Kind.CLASS, cls=dotted, certainty=_PROVEN)
    if kind_of_library(dotted) is not None:
        return make(Kind.CLASS, cls=dotted, certainty=_PROVEN)
    return external(dotted)


def builtin(name: str) -> Value | None:
    """The value of a builtin name, None when there is no such builtin."""
    if name not in _BUILTINS:
        return None
    return make(Kind.CALLABLE, cls=f"builtins.{name}", certainty=_PROVEN)


def conventional(context: Context, name: str) -> Value | None:
    """What a key or attribute of a model output or batch holds by its name."""
    dtype = OUTPUT_TENSORS.get(name)
    if dtype is not None:
        return make(Kind.TENSOR, context.ambient, dtype, certainty=_ASSUMED)
    return None


# --- attributes ----------------------------------------------------------------------------------------------------


def attribute(context: Context, v: Value, name: str) -> Value:
    """``v.name``, methods as CALLABLE where they are known."""
    kind = v.kind
    if kind is _T:
        return _tensor_attribute(context, v, name)
    if kind is Kind.EXTERNAL:
        return resolve(context, f"{v.cls}.{name}")
    if kind is Kind.MODULE or kind is Kind.INSTANCE:
        return _object_attribute(context, v, name)
    if kind is Kind.CLASS:
        return _class_attribute(context, v, name)
    if kind is Kind.CONFIG:
        return UNKNOWN
    if kind is Kind.ENCODING:
        return key(context, v, name)
    if kind is Kind.NDARRAY:
        if name in ("shape", "ndim", "size", "dtype"):
            return tensors.INTS if name == "shape" else tensors.INT if name != "dtype" else UNKNOWN
        return tensors.NDARRAY if name == "T" else UNKNOWN
    if kind is Kind.SEQUENCE and v.cls == "torch.return_types" and v.items is not None and len(v.items) == 2:
        return v.items[0] if name == "values" else v.items[1] if name == "indices" else UNKNOWN
    if kind is Kind.UNKNOWN:
        return _unknown_attribute(context, v, name)
    return UNKNOWN


def _tensor_attribute(context: Context, v: Value, name: str) -> Value:
    value = _TENSOR_FACTS.get(name)
    if value is not None:
        return value
    if name == "device":
        return make(Kind.DEVICE, v.device, certainty=v.certainty, reasons=v.reasons, cls=v.cls)
    if name == "dtype":
        return make(Kind.DTYPE, dtype=v.dtype, certainty=_PROVEN)
    if name in _TENSOR_VIEWS:
        return tensors.like(v, None, v.rank if _TENSOR_VIEWS[name] else None, False)
    if name in OUTPUT_SEQUENCES:
        return make(Kind.SEQUENCE, element=tensors.like(v, DTypeClass.FLOAT), certainty=_ASSUMED)
    if name in OUTPUT_TENSORS:
        return tensors.like(v, OUTPUT_TENSORS[name])
    return UNKNOWN


def _object_attribute(context: Context, v: Value, name: str) -> Value:
    cls = v.cls
    if cls is not None:
        known = context.outside.attribute(cls, name)
        if known is not None:
            return known
        method = context.outside.method(cls, name)
        if method is not None:
            return make(Kind.CALLABLE, cls=method, certainty=_PROVEN)
    if v.kind is Kind.MODULE:
        if name == "device":
            return make(Kind.DEVICE, v.device if v.device is Device.ACCELERATOR else context.ambient,
                        certainty=_ASSUMED)  # fmt: skip
        if name == "dtype":
            return make(Kind.DTYPE, dtype=DTypeClass.FLOAT, certainty=_ASSUMED)
        if name == "training":
            return tensors.BOOL
        if name in ("weight", "bias"):
            return make(Kind.TENSOR, context.ambient, DTypeClass.FLOAT, certainty=_ASSUMED)
    if v.kind is Kind.INSTANCE and is_output(context, v):
        if name in OUTPUT_SEQUENCES:
            held = make(Kind.TENSOR, context.ambient, DTypeClass.FLOAT, certainty=_ASSUMED)
            return make(Kind.SEQUENCE, element=held, certainty=_ASSUMED)
        value = conventional(context, name)
        if value is not None:
            return value
    if is_host_name(name):
        return UNKNOWN
    return named(name, context.ambient) or UNKNOWN


def _class_attribute(context: Context, v: Value, name: str) -> Value:
    if v.cls is None:
        return UNKNOWN
    method = context.outside.method(v.cls, name)
    if method is not None:
        return make(Kind.CALLABLE, cls=method, certainty=_PROVEN)
    known = context.outside.attribute(v.cls, name)
    if known is not None:
        return known
    if lookup(f"{v.cls}.{name}", context.target) is not None:
        return make(Kind.CALLABLE, cls=f"{v.cls}.{name}", certainty=_PROVEN)
    return UNKNOWN


def _unknown_attribute(context: Context, v: Value, name: str) -> Value:
    if v.cls is not None and context.symbolic:
        return tensors.deferred(v, "." + name)
    if not context.torchy:
        return UNKNOWN
    if name in ("shape", "device", "dtype", "ndim"):
        if name == "shape":
            return tensors.INTS
        return named(name, context.ambient) or tensors.INT
    return conventional(context, name) or named(name, context.ambient) or UNKNOWN


def key(context: Context, v: Value, name: str) -> Value:
    """``v["name"]`` of a mapping, an encoding or an unknown object."""
    if v.kind is Kind.ENCODING:
        if v.device is Device.UNKNOWN:
            return v.element if v.element is not None else UNKNOWN
        dtype = TENSORS.get(name, DTypeClass.UNKNOWN)
        return make(Kind.TENSOR, v.device, dtype, certainty=v.certainty, reasons=v.reasons)
    if v.element is not None or v.cls in tensors.PARTS:
        return tensors.contents(v)
    if v.kind is Kind.UNKNOWN and v.cls is not None and context.symbolic:
        return tensors.deferred(v, f".{name}" if name.isidentifier() else "[]")
    if v.kind in (Kind.UNKNOWN, Kind.MAPPING, Kind.INSTANCE) and context.torchy:
        found = conventional(context, name)
        if found is None and name in TENSORS:
            found = make(_T, context.ambient, TENSORS[name], certainty=_ASSUMED)
        return found or UNKNOWN
    return UNKNOWN


def item(context: Context, v: Value, at: int) -> Value:
    """``v[at]`` for a constant position."""
    if v.items is not None:
        if -len(v.items) <= at < len(v.items):
            return v.items[at]
        return tensors.element(v)
    if v.kind is Kind.UNKNOWN:
        return tensors.deferred(v, f"[{at}]")
    if v.kind is Kind.ITERATOR or v.kind is Kind.MAPPING:
        return tensors.contents(v)
    if v.kind is Kind.INSTANCE and is_output(context, v):
        return make(Kind.TENSOR, context.ambient, DTypeClass.FLOAT, certainty=_ASSUMED)
    return tensors.element(v)


def is_output(context: Context, v: Value) -> bool:
    """Whether an instance is a model output: a record whose items are tensors where the model is."""
    if v.device is not Device.UNKNOWN:
        return True
    cls = v.cls
    if cls is None:
        return False
    if "Output" in cls.rpartition(".")[2]:
        return True
    return context.outside.is_class(cls) and any(b.endswith("ModelOutput") for b in context.outside.bases(cls))
