"""Calls of values: functions, methods by the kind of their receiver, modules and classes."""

from __future__ import annotations

from awp_lint.detector.semantics.interpret import results, tensors
from awp_lint.detector.semantics.interpret.classes import instance, kind_of_library
from awp_lint.detector.semantics.interpret.machine import NONE, Args, Context, Keywords
from awp_lint.detector.semantics.interpret.objects import FOREIGN, resolve
from awp_lint.detector.semantics.interpret.references import encode
from awp_lint.detector.semantics.library import Fact
from awp_lint.detector.semantics.library.facts import lookup
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, make

_T = Kind.TENSOR
_PROVEN, _ASSUMED = Certainty.PROVEN, Certainty.ASSUMED

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
            return results.apply(context, fact, [v, *operands], keywords)
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
        if v.cls is not None and context.outside.method(v.cls, name) is not None:
            return _object_method(context, v, name, operands, keywords)  # the project's own says what it returns
        return _tokenizer_method(context, name, keywords)
    if kind is Kind.STREAM:
        fact = lookup(f"torch.cuda.Event.{name}", context.target) or lookup(f"torch.cuda.Stream.{name}", context.target)
        return results.apply(context, fact, operands, keywords) if fact is not None else UNKNOWN
    return UNKNOWN


def _unknown_method(context: Context, v: Value, name: str, operands: Args, keywords: Keywords) -> Value:
    sent = operands[0] if name == "to" and operands and "non_blocking" in keywords else None
    if sent is not None and sent.kind is Kind.STRING and sent.device is Device.HOST:
        return make(Kind.TENSOR, Device.HOST, certainty=_ASSUMED)  # modules are not sent to the host this way
    if v.cls is not None and context.symbolic and tensors.fits(v.cls):
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
            return results.apply(context, fact, [make(Kind.TENSOR), *operands], keywords)
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
            return results.apply(context, fact, operands, keywords)
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
            found = results.place(context, argument)
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
            return results.apply(context, fact, operands, keywords)
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
        return results.apply(context, fact, operands, keywords)
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
        return special(context, dotted, operands, keywords) or results.apply(context, fact, operands, keywords)
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
