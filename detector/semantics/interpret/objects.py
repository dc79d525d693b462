"""Names, attributes, methods and calls on values, independent of where they stand in the source."""

from __future__ import annotations

import builtins

from awp_lint.detector.semantics.interpret import tensors
from awp_lint.detector.semantics.interpret.classes import instance, kind_of, kind_of_library
from awp_lint.detector.semantics.interpret.conventions import (
    OUTPUT_SEQUENCES,
    OUTPUT_TENSORS,
    TENSORS,
    is_host_name,
    named,
)
from awp_lint.detector.semantics.interpret.machine import NONE, Args, Context, Keywords
from awp_lint.detector.semantics.interpret.references import encode
from awp_lint.detector.semantics.library import Fact
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

# Methods that only tensors have: on an object of unknown kind in a file that works with torch, they make it one.
TENSOR_ONLY = frozenset(
    {
        "masked_fill", "masked_fill_", "unsqueeze", "permute", "contiguous", "softmax", "log_softmax", "argmax",
        "expand", "expand_as", "view", "view_as", "reshape", "index_select", "scatter", "scatter_", "gather", "topk",
        "cumsum", "repeat_interleave", "nonzero", "type_as", "new_zeros", "new_ones", "new_full", "new_empty",
        "new_tensor", "unbind", "chunk", "sigmoid", "tanh", "clamp", "clamp_", "masked_select", "bmm", "matmul",
        "squeeze", "flatten", "transpose", "detach", "float", "half", "bfloat16", "long", "bool", "amax", "amin",
        "logsumexp", "multinomial", "unflatten", "narrow", "rsqrt", "exp", "neg", "eq", "ne", "mul_", "add_", "copy_",
        "index_copy_", "index_add_", "zero_", "fill_", "pow", "addmm", "baddbmm", "logical_and", "logical_not",
    }
)  # fmt: skip

_READS: dict[str, Value] = {
    "item": tensors.SCALAR,
    "tolist": tensors.SCALARS,
    "numpy": tensors.NDARRAY,
    "numel": tensors.INT,
    "dim": tensors.INT,
    "size": UNKNOWN,
}

_SEQUENCE_METHODS: dict[str, Value | None] = {
    "index": tensors.INT, "count": tensors.INT, "append": NONE, "extend": NONE, "insert": NONE, "remove": NONE,
    "sort": NONE, "reverse": NONE, "clear": NONE, "add": NONE, "update": NONE, "discard": NONE, "numel": tensors.INT,
}  # fmt: skip
_STRING_METHODS: dict[str, Value] = {
    **dict.fromkeys(("split", "rsplit", "splitlines", "partition", "rpartition"), tensors.STRINGS),
    **dict.fromkeys(
        ("startswith", "endswith", "isdigit", "isalpha", "isspace", "isupper", "islower", "isnumeric"), tensors.BOOL
    ),
    **dict.fromkeys(("find", "rfind", "index", "count"), tensors.INT),
}


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


# --- calls ---------------------------------------------------------------------------------------------------------


def method_fact(name: str, context: Context) -> Fact | None:
    """The fact of a tensor method; ``name_`` falls back to ``name``."""
    fact = lookup(f"torch.Tensor.{name}", context.target)
    if fact is None and name.endswith("_") and not name.endswith("__"):
        fact = lookup(f"torch.Tensor.{name[:-1]}", context.target)
    return fact


def method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    """``v.name(…)``."""
    kind = v.kind
    if kind is _T:
        fact = method_fact(name, context)
        if fact is not None:
            return tensors.apply(context, fact, [v, *operands], keywords)
        return UNKNOWN
    if kind is Kind.UNKNOWN:
        return _unknown_method(context, v, name, operands, keywords)
    if kind is Kind.EXTERNAL:
        return call(context, resolve(context, f"{v.cls}.{name}"), operands, keywords)
    if kind is Kind.MODULE or kind is Kind.INSTANCE:
        return _object_method(context, v, name, operands, keywords)
    if kind is Kind.CLASS:
        return _class_method(context, v, name, operands, keywords)
    if kind is Kind.SEQUENCE:
        return _sequence_method(context, v, name, operands)
    if kind is Kind.MAPPING or kind is Kind.ENCODING:
        return _mapping_method(context, v, name, operands, keywords)
    if kind is Kind.NDARRAY:
        return {"item": tensors.SCALAR, "tolist": tensors.SCALARS, "any": tensors.BOOL, "all": tensors.BOOL}.get(
            name, tensors.NDARRAY
        )
    if kind is Kind.STRING:
        return _STRING_METHODS.get(name, tensors.STRING)
    if kind is Kind.TOKENIZER:
        return _tokenizer_method(context, name, keywords)
    if kind is Kind.STREAM:
        fact = lookup(f"torch.cuda.Event.{name}", context.target) or lookup(f"torch.cuda.Stream.{name}", context.target)
        return tensors.apply(context, fact, operands, keywords) if fact is not None else UNKNOWN
    return UNKNOWN


def _unknown_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    if v.cls is not None and context.symbolic and len(v.cls) < tensors.MAX_REFERENCE:
        return tensors.deferred(v, f".{name}({encode(operands, keywords)})")
    if not context.torchy:
        return UNKNOWN
    if name in _READS:
        return _READS[name]
    if name == "cpu":
        return make(Kind.TENSOR, Device.HOST, certainty=_ASSUMED)
    if name in TENSOR_ONLY:
        fact = method_fact(name, context)
        if fact is not None:
            return tensors.apply(context, fact, [make(Kind.TENSOR), *operands], keywords)
    return UNKNOWN


def _object_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    cls = v.cls
    if cls is not None:
        target = context.outside.method(cls, name)
        if target is not None:
            returned = context.outside.returns(target)
            if returned is not None and returned.kind is not Kind.UNKNOWN:
                return returned
            if v.kind is not Kind.MODULE:
                return UNKNOWN
        held = context.outside.attribute(cls, name)
        if held is not None and held.kind is not Kind.UNKNOWN:
            return call(context, held, operands, keywords)
        fact = lookup(f"{cls}.{name}", context.target)
        if fact is not None:
            return tensors.apply(context, fact, operands, keywords)
    if v.kind is Kind.MODULE:
        return _module_method(context, v, name, operands, keywords)
    if name == "to" and v.device is not Device.UNKNOWN:
        return v
    return UNKNOWN


def moved(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    """A module or encoding after ``.to(…)``, ``.cuda()``, ``.cpu()``."""
    device, certainty = v.device, v.certainty
    if name == "cuda":
        device, certainty = (Device.ACCELERATOR if context.target.device != "cpu" else Device.HOST), _PROVEN
    elif name == "cpu":
        device, certainty = Device.HOST, _PROVEN
    else:
        for argument in (*operands, *(keywords[k] for k in ("device",) if k in keywords)):
            found = tensors.place(context, argument)
            if found is not None:
                device, certainty = found if found[0] is not Device.UNKNOWN else (context.ambient, _ASSUMED)
            elif argument.kind is Kind.UNKNOWN:
                device, certainty = context.ambient, _ASSUMED
    return make(v.kind, device, v.dtype, v.rank, v.element, v.items, v.cls, False, False, certainty, v.reasons)


_MODULE_SELF = frozenset(
    {"eval", "train", "half", "float", "bfloat16", "double", "requires_grad_", "apply", "type", "share_memory"}
)


def _module_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    if name in _MODULE_SELF:
        return v
    if name in ("to", "cuda", "cpu"):
        return moved(context, v, name, operands, keywords)
    if name in ("parameters", "buffers"):
        return make(Kind.ITERATOR, element=_weights(context, v), certainty=_PROVEN)
    if name == "state_dict":
        return make(Kind.MAPPING, element=_weights(context, v), certainty=_PROVEN)
    if name in ("modules", "children"):
        return make(Kind.ITERATOR, element=make(Kind.MODULE, v.device, certainty=_ASSUMED), certainty=_PROVEN)
    if name == "generate":
        return make(Kind.TENSOR, _model_device(context, v)[0], DTypeClass.INT, certainty=_ASSUMED)
    if name == "forward":
        return module_result(context, v, operands, keywords)
    if any(argument.on_device for argument in operands):
        # an attribute that nobody saw assigned, called with a tensor: a part of the module, or an activation
        return module_result(context, make(Kind.MODULE, v.device, certainty=v.certainty), operands, keywords)
    return UNKNOWN


def _weights(context: Context, v: Value) -> Value:
    device, certainty = _model_device(context, v)
    return make(Kind.TENSOR, device, DTypeClass.FLOAT, certainty=certainty)


def _model_device(context: Context, v: Value) -> tuple[Device, Certainty]:
    if v.device in (Device.ACCELERATOR, Device.HOST):
        return v.device, v.certainty
    return context.ambient, _ASSUMED


def module_result(context: Context, v: Value, operands: Args, keywords: Keywords) -> Value:
    """What calling an nn.Module returns: what its ``forward`` is known to return, else a tensor where it is."""
    if v.cls is not None:
        forward = context.outside.method(v.cls, "forward") or context.outside.method(v.cls, "__call__")
        if forward is not None:
            returned = context.outside.returns(forward)
            if returned is not None and returned.kind is not Kind.UNKNOWN:
                return returned
        fact = lookup(f"{v.cls}.forward", context.target)
        if fact is not None:
            return tensors.apply(context, fact, operands, keywords)
    device, certainty = _model_device(context, v)
    for argument in (*operands, *keywords.values()):
        if argument.on_device and (
            device is Device.HOST or (argument.device is Device.ACCELERATOR and device is Device.AMBIENT)
        ):
            device, certainty = argument.device, argument.certainty
    return make(Kind.TENSOR, device, DTypeClass.FLOAT, certainty=certainty)


def _class_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    if v.cls is None:
        return UNKNOWN
    target = context.outside.method(v.cls, name)
    if target is not None:
        returned = context.outside.returns(target)
        if returned is not None and returned.kind is not Kind.UNKNOWN:
            return returned
    fact = lookup(f"{v.cls}.{name}", context.target)
    if fact is not None:
        return tensors.apply(context, fact, operands, keywords)
    if name == "from_pretrained":
        return loaded(context, v.cls, keywords)
    if name in ("from_config", "_from_config", "from_single_file"):
        return instance(context, v.cls)
    return UNKNOWN


def loaded(context: Context, cls: str, keywords: Keywords) -> Value:
    """What ``cls.from_pretrained(…)`` makes: on the host, unless a device map says otherwise."""
    v = instance(context, cls)
    if v.kind in (Kind.MODULE, Kind.INSTANCE) and "device_map" in keywords:
        given = keywords["device_map"]
        if given.kind is Kind.STRING and given.device is Device.HOST:
            return v
        device = Device.ACCELERATOR if context.target.device != "cpu" else Device.HOST
        return make(v.kind, device, cls=v.cls, fresh=True, certainty=_PROVEN)
    return v


def _sequence_method(context: Context, v: Value, name: str, operands: Args) -> Value:
    if name == "pop":
        return tensors.element(v)
    if name == "copy":
        return v
    return _SEQUENCE_METHODS.get(name) or UNKNOWN


def _mapping_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    if v.kind is Kind.ENCODING and name in ("to", "cuda", "cpu"):
        return moved(context, v, name, operands, keywords)
    if name in ("get", "pop", "setdefault"):
        return tensors.contents(v)
    if name == "keys":
        return make(Kind.ITERATOR, element=tensors.STRING, certainty=_PROVEN)
    held = v.element
    if held is None and v.kind is Kind.ENCODING and v.device is not Device.UNKNOWN:
        held = make(Kind.TENSOR, v.device, certainty=v.certainty, reasons=v.reasons)
    if name == "values":
        return make(Kind.ITERATOR, element=held, certainty=_PROVEN)
    if name == "items":
        pair = make(Kind.SEQUENCE, items=(UNKNOWN, held or UNKNOWN), certainty=_PROVEN)
        return make(Kind.ITERATOR, element=pair, certainty=_PROVEN)
    if name == "copy":
        return v
    return NONE if name in ("update", "clear") else UNKNOWN


def _tokenizer_method(context: Context, name: str, keywords: Keywords) -> Value:
    if name in ("decode", "apply_chat_template", "convert_ids_to_tokens", "convert_tokens_to_string"):
        if name == "apply_chat_template" and "tokenize" not in keywords:
            return encoding(keywords)
        return tensors.STRING
    if name in ("batch_decode", "tokenize"):
        return tensors.STRINGS
    if name in ("encode", "pad", "encode_plus", "batch_encode_plus", "__call__"):
        return encoding(keywords)
    if name == "convert_tokens_to_ids":
        return tensors.INT
    return UNKNOWN


def encoding(keywords: Keywords) -> Value:
    """What a tokenizer returns: host tensors if asked for tensors, else lists of ints."""
    if "return_tensors" in keywords:
        return make(Kind.ENCODING, Device.HOST, certainty=_PROVEN)
    return make(Kind.ENCODING, element=tensors.INTS, certainty=_ASSUMED)


def call(context: Context, f: Value, operands: Args, keywords: Keywords) -> Value:
    """``f(…)``."""
    kind = f.kind
    if kind is Kind.CALLABLE:
        return _function(context, f, operands, keywords)
    if kind is Kind.MODULE:
        return module_result(context, f, operands, keywords)
    if kind is Kind.CLASS:
        return construct(context, f, operands, keywords)
    if kind is Kind.TOKENIZER:
        return encoding(keywords)
    if kind is Kind.INSTANCE:
        if f.cls is not None:
            target = context.outside.method(f.cls, "__call__")
            if target is not None:
                return context.outside.returns(target) or UNKNOWN
        return UNKNOWN
    if kind is Kind.EXTERNAL:
        known = special(context, f.cls, operands, keywords) if f.cls is not None else None
        if known is not None:
            return known
        if context.symbolic and f.cls is not None and f.cls.partition(".")[0] not in FOREIGN:
            return make(Kind.UNKNOWN, cls=f"{f.cls}({encode(operands, keywords)})")
        if f.cls is not None and f.cls.startswith(("numpy.", "scipy.")):
            return tensors.NDARRAY
        owner, _, last = (f.cls or "").rpartition(".")
        if owner and kind_of_library(owner) is not None:  # a class method that a reference names in one piece
            return _class_method(context, make(Kind.CLASS, cls=owner, certainty=_PROVEN), last, operands, keywords)
        return UNKNOWN
    if kind is Kind.UNKNOWN:
        return tensors.deferred(f, f"({encode(operands, keywords)})")
    return UNKNOWN


def _function(context: Context, f: Value, operands: Args, keywords: Keywords) -> Value:
    dotted = f.cls
    if dotted is None:
        return f.element or UNKNOWN
    fact = lookup(dotted, context.target)
    if fact is not None:
        return special(context, dotted, operands, keywords) or tensors.apply(context, fact, operands, keywords)
    value = special(context, dotted, operands, keywords)
    if value is not None:
        return value
    return context.outside.returns(dotted) or UNKNOWN


def construct(context: Context, f: Value, operands: Args, keywords: Keywords) -> Value:
    """``cls(…)``."""
    if f.cls is None:
        return UNKNOWN
    v = instance(context, f.cls)
    if f.cls in tensors.PARTS:
        if not operands:
            return make(v.kind, cls=f.cls, certainty=_PROVEN)
        given = operands[0]
        if given.kind is Kind.SEQUENCE and given.items is not None:
            return make(v.kind, items=given.items, cls=f.cls, certainty=_PROVEN)
        held = (given.element or UNKNOWN) if given.kind is Kind.MAPPING else tensors.element(given)
        known = held.kind is not Kind.UNKNOWN or held.cls is not None
        return make(v.kind, element=held if known else None, cls=f.cls, certainty=_PROVEN)
    return v


# Functions that call their first argument with the others, and those that give back a form of it.
_CALLERS = frozenset({"torch.utils.checkpoint.checkpoint"})
_WRAPPERS = frozenset(
    {"functools.partial", "torch.vmap", "torch.func.vmap", "functools.lru_cache", "functools.cache", "tqdm.tqdm",
     "tqdm.auto.tqdm", "tqdm.trange", "torch.jit.script", "torch.compile"}
)  # fmt: skip


def special(context: Context, dotted: str, operands: Args, keywords: Keywords) -> Value | None:
    """Functions whose result depends on all their arguments."""
    if dotted in _CALLERS and operands:
        return call(context, operands[0], operands[1:], {})
    if dotted in _WRAPPERS and operands:
        return operands[0]
    if dotted == "itertools.groupby" and operands:
        held = tensors.element(operands[0])
        pair = (held, make(Kind.ITERATOR, element=held, certainty=_PROVEN))
        return make(Kind.ITERATOR, element=make(Kind.SEQUENCE, items=pair, certainty=_PROVEN), certainty=_PROVEN)
    if not dotted.startswith("builtins."):
        return None
    name = dotted[9:]
    if name == "zip":
        items = tuple(tensors.element(v) for v in operands)
        return make(Kind.ITERATOR, element=make(Kind.SEQUENCE, items=items, certainty=_PROVEN), certainty=_PROVEN)
    if name == "enumerate" and operands:
        pair = (tensors.INT, tensors.element(operands[0]))
        return make(Kind.ITERATOR, element=make(Kind.SEQUENCE, items=pair, certainty=_PROVEN), certainty=_PROVEN)
    if name == "map" and len(operands) > 1:
        held = call(context, operands[0], [tensors.element(v) for v in operands[1:]], {})
        return make(Kind.ITERATOR, element=held, certainty=_PROVEN)
    if name == "next" and operands:
        return tensors.element(operands[0])
    return None


__all__ = [
    "attribute",
    "builtin",
    "call",
    "conventional",
    "external",
    "key",
    "kind_of",
    "method",
    "moved",
    "resolve",
]
