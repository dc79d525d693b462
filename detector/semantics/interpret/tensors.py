"""Arithmetic on values: what operators, indexing and the result rules of library facts make of tensors."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

from awp_lint.detector.semantics.interpret.machine import NONE, Args, Context, Keywords
from awp_lint.detector.semantics.library import Fact
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, held, join, make

_T, _S = Kind.TENSOR, Kind.SCALAR
_ACC, _HOST, _AMB, _NODEV = Device.ACCELERATOR, Device.HOST, Device.AMBIENT, Device.UNKNOWN
_F, _I, _B, _U = DTypeClass.FLOAT, DTypeClass.INT, DTypeClass.BOOL, DTypeClass.UNKNOWN
_PROVEN, _ASSUMED = Certainty.PROVEN, Certainty.ASSUMED
MAX_REFERENCE = 160  # characters of a deferred reference

SCALAR = make(Kind.SCALAR, certainty=_PROVEN)
INT = make(Kind.SCALAR, dtype=_I, certainty=_PROVEN)
FLOAT = make(Kind.SCALAR, dtype=_F, certainty=_PROVEN)
BOOL = make(Kind.SCALAR, dtype=_B, certainty=_PROVEN)
STRING = make(Kind.STRING, certainty=_PROVEN)
INTS = make(Kind.SEQUENCE, element=INT, certainty=_PROVEN)
SCALARS = make(Kind.SEQUENCE, element=SCALAR, certainty=_PROVEN)
STRINGS = make(Kind.SEQUENCE, element=STRING, certainty=_PROVEN)
SEQUENCE = make(Kind.SEQUENCE, certainty=_PROVEN)
MAPPING = make(Kind.MAPPING, certainty=_PROVEN)
NDARRAY = make(Kind.NDARRAY, Device.HOST, certainty=_PROVEN)
ITERATOR = make(Kind.ITERATOR, certainty=_PROVEN)
_SCALARS = {_I: INT, _F: FLOAT, _B: BOOL, _U: SCALAR}


# Containers that register their items as parts of a module, and what an unknown item is.
PARTS: dict[str | None, Kind] = {
    "torch.nn.ModuleList": Kind.MODULE,
    "torch.nn.ModuleDict": Kind.MODULE,
    "torch.nn.ParameterList": Kind.TENSOR,
    "torch.nn.ParameterDict": Kind.TENSOR,
}


def like(v: Value, dtype: DTypeClass | None = None, rank: int | None = None, fresh: bool = True) -> Value:
    """A tensor where ``v`` lives; dtype as ``v`` unless given."""
    return make(
        Kind.TENSOR, v.device, v.dtype if dtype is None else dtype, rank, None, None, v.cls, False, fresh, v.certainty,
        v.reasons,
    )  # fmt: skip


def deferred(v: Value, operation: str) -> Value:
    """UNKNOWN, or a reference to what an operation gives on a value that only the linker will know."""
    if v.kind is Kind.UNKNOWN and v.cls is not None and len(v.cls) < MAX_REFERENCE:
        return reference(v.cls + operation)
    return UNKNOWN


@functools.lru_cache(maxsize=20_000)
def reference(text: str) -> Value:
    """The value of a deferred reference; the same text gives the same object."""
    return make(Kind.UNKNOWN, cls=text)


def placed(v: Value, device: Device, certainty: Certainty) -> Value:
    """The same tensor on another device."""
    return make(v.kind, device, v.dtype, v.rank, v.element, v.items, v.cls, False, True, certainty, v.reasons)


def _tensor_of(v: Value) -> Value | None:
    """The tensor that an operand stands for, with an unknown one as a tensor of unknown place; None for the rest."""
    if v.kind is _T:
        return v
    if v.kind is Kind.UNKNOWN:
        return make(Kind.TENSOR, cls=v.cls)
    return None


def promote(a: DTypeClass, b: DTypeClass) -> DTypeClass:
    """The dtype class of arithmetic on two."""
    if a is b:
        return a
    if a is _F or b is _F:
        return _F
    if a is _U or b is _U:
        return _U
    return _I


def together(a: Value, b: Value) -> tuple[Device, Certainty, Value]:
    """Device and certainty of an operation on two tensors, and the operand that decided."""
    if a.device is b.device:
        return a.device, max(a.certainty, b.certainty), a if a.certainty >= b.certainty else b
    for device in (_ACC, _AMB):
        if a.device is device:
            return device, a.certainty, a
        if b.device is device:
            return device, b.certainty, b
    # a host tensor and one of unknown place: an operation on both runs on the host, unless one is 0-d
    host, other = (a, b) if a.device is _HOST else (b, a)
    if host.rank == 0:
        return other.device, other.certainty, other
    return _NODEV, Certainty.UNKNOWN, other


def binary(context: Context, a: Value, b: Value, *, division: bool = False, bitwise: bool = False) -> Value:
    """``a + b`` and the other arithmetic operators."""
    ka, kb = a.kind, b.kind
    if ka is _T or kb is _T:
        if ka is _T and kb is _T:
            device, certainty, source = together(a, b)
            dtype = promote(a.dtype, b.dtype)
            rank = None if a.rank is None or b.rank is None else max(a.rank, b.rank)
        else:
            source, other = (a, b) if ka is _T else (b, a)
            if other.kind is Kind.NDARRAY and source.device is _HOST:
                return source
            device, certainty = source.device, source.certainty
            dtype = promote(source.dtype, other.dtype) if other.kind is _S else _U if source.dtype is not _F else _F
            rank = source.rank if other.kind is _S else None
            if device is _HOST and other.kind is Kind.UNKNOWN and (source.rank == 0 or other.cls is not None):
                device, certainty = _NODEV, Certainty.UNKNOWN
        if division:
            dtype = _F
        return make(Kind.TENSOR, device, dtype, rank, None, None, source.cls, False, True, certainty, source.reasons)
    if ka is Kind.NDARRAY or kb is Kind.NDARRAY:
        return NDARRAY
    if ka is _S and kb is _S:
        if a.constant and b.constant:
            return make(_S, dtype=promote(a.dtype, b.dtype), constant=True, certainty=_PROVEN)
        return _SCALARS[_F if division else promote(a.dtype, b.dtype)]
    if ka is Kind.STRING:
        return STRING
    if ka is Kind.SEQUENCE:
        if kb is Kind.SEQUENCE:
            if a.items is not None and b.items is not None and len(a.items) + len(b.items) <= 16:
                return make(Kind.SEQUENCE, items=a.items + b.items, certainty=_PROVEN)
            return make(Kind.SEQUENCE, element=_either(element(a), element(b)), certainty=_PROVEN)
        return make(Kind.SEQUENCE, element=_known(element(a)), certainty=_PROVEN)
    if kb is Kind.SEQUENCE and ka is _S:
        return make(Kind.SEQUENCE, element=_known(element(b)), certainty=_PROVEN)
    if ka is Kind.MAPPING and bitwise:
        return a
    if ka is Kind.UNKNOWN and a.cls is not None:
        return deferred(a, "~")
    if kb is Kind.UNKNOWN and b.cls is not None:
        return deferred(b, "~")
    return UNKNOWN


def compare(a: Value, b: Value) -> Value:
    """``a == b``, ``a < b``: a tensor of bools where a tensor takes part."""
    for v in (a, b):
        if v.kind is _T:
            other = b if v is a else a
            if other.kind is _T:
                device, certainty, source = together(a, b)
                rank = None if a.rank is None or b.rank is None else max(a.rank, b.rank)
                return make(
                    Kind.TENSOR, device, _B, rank, None, None, source.cls, False, True, certainty, source.reasons
                )
            if other.kind in (Kind.NONE, Kind.STRING):
                return BOOL
            return like(v, _B, v.rank if other.kind is _S else None)
    if a.kind is Kind.NDARRAY or b.kind is Kind.NDARRAY:
        return NDARRAY
    for v in (a, b):
        if v.kind is Kind.UNKNOWN:
            return deferred(v, "?") if v.cls is not None and (b if v is a else a).kind is not Kind.STRING else UNKNOWN
    return BOOL


def _known(v: Value | None) -> Value | None:
    return None if v is None or v == UNKNOWN else v


def _either(a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return a or b
    return _known(join(a, b))


def joined(values: Sequence[Value]) -> Value | None:
    """All values joined; None for none."""
    result: Value | None = None
    for value in values:
        result = value if result is None else join(result, value)
    return result


def element(v: Value) -> Value:
    """What iterating over a value gives."""
    kind = v.kind
    if kind is _T:
        return make(
            Kind.TENSOR, v.device, v.dtype, None if not v.rank else v.rank - 1, None, None, v.cls, False, False,
            v.certainty, v.reasons,
        )  # fmt: skip
    if kind is Kind.SEQUENCE or kind is Kind.ITERATOR:
        return contents(v)
    if kind is Kind.NDARRAY:
        return NDARRAY
    if kind is Kind.STRING or kind is Kind.MAPPING or kind is Kind.ENCODING:
        return STRING
    if kind is Kind.MODULE:
        return make(Kind.MODULE, v.device, certainty=_ASSUMED) if v.cls == "torch.nn.Sequential" else UNKNOWN
    if kind is Kind.UNKNOWN:
        return deferred(v, "[]")
    return UNKNOWN


def contents(v: Value) -> Value:
    """What a container holds; parts of a module are modules (or weights) even where nobody saw which."""
    found = held(v)
    if found is not None and (found.kind is not Kind.UNKNOWN or found.cls is not None):
        return found
    kind = PARTS.get(v.cls)
    if kind is None:
        return UNKNOWN
    return make(kind, _AMB, _F if kind is _T else _U, certainty=_ASSUMED)


# --- result rules of library facts ---------------------------------------------------------------------------------

Rule = Callable[[Context, Fact, Args, Keywords], Value]
RULES: dict[str, Rule] = {}


def rule(*names: str) -> Callable[[Rule], Rule]:
    """Register the meaning of result rules."""

    def register(function: Rule) -> Rule:
        for name in names:
            RULES[name] = function
        return function

    return register


def apply(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    """What a call with this fact returns; for methods the receiver is the first operand."""
    return RULES[fact.result.rule](context, fact, operands, keywords)


def _first(operands: Args, keywords: Keywords) -> Value:
    if operands:
        return operands[0]
    for name in ("input", "tensor", "self", "tensors", "x", "data"):
        if name in keywords:
            return keywords[name]
    return UNKNOWN


def _first_tensor(operands: Args, keywords: Keywords) -> Value:
    v = _first(operands, keywords)
    return v if v.kind is _T else make(Kind.TENSOR, cls=v.cls if v.kind is Kind.UNKNOWN else None)


def _dtype(fact: Fact, default: DTypeClass, keywords: Keywords) -> DTypeClass:
    if keywords and "dtype" in keywords:
        return keywords["dtype"].dtype
    return default if fact.result.dtype is None else fact.result.dtype


@rule("same")
def _same(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return like(v, _dtype(fact, v.dtype, keywords), v.rank, not fact.is_view)


@rule("view")
def _view(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    rank = fact.result.rank
    if rank is None and len(operands) > 2 and all(o.kind is _S for o in operands[1:]) and fact.name[-7:] != "flatten":
        rank = len(operands) - 1
    return like(v, None, rank, not fact.is_view)


@rule("squeeze")
def _squeeze(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return like(v, None, None, False)


@rule("unsqueeze")
def _unsqueeze(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return like(v, fact.result.dtype, None if v.rank is None else v.rank + 1, not fact.is_view)


@rule("cast")
def _cast(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    dtype = fact.result.dtype
    if dtype is None:
        dtype = operands[1].dtype if len(operands) > 1 and operands[1].kind is Kind.DTYPE else _U
    return like(v, dtype, v.rank)


@rule("like", "index")
def _like(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    result: Value | None = None
    dtype: DTypeClass | None = None
    for v in (*operands, *keywords.values()):
        if v.kind is _S and result is not None:
            continue
        t = _tensor_of(v)
        if t is None:
            continue
        dtype = t.dtype if dtype is None else promote(dtype, t.dtype)
        if result is None:
            result = t
        else:
            device, certainty, source = together(result, t)
            result = make(Kind.TENSOR, device, cls=source.cls, certainty=certainty, reasons=source.reasons)
    if result is None:
        result = make(Kind.TENSOR)
    return like(result, _dtype(fact, dtype or _U, keywords), fact.result.rank)


@rule("where")
def _where(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    if len(operands) == 1 and not keywords:  # the indices where it holds, one tensor a dimension
        index = like(_first_tensor(operands, keywords), _I, 1)
        return make(Kind.SEQUENCE, element=index, certainty=index.certainty)
    return _like(context, fact, operands, keywords)


@rule("reduce")
def _reduce(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    over = operands[1] if len(operands) > 1 else keywords.get("dim", keywords.get("axis"))
    rank: int | None = 0
    if over is not None and over.kind is not Kind.NONE:
        rank = None
        if v.rank is not None and over.kind is _S:
            rank = v.rank if "keepdim" in keywords or len(operands) > 2 else max(v.rank - 1, 0)
    dtype = v.dtype
    if dtype is not _F:
        short = fact.name.rpartition(".")[2]
        if short in _MEANS:
            dtype = _F
        elif dtype is _B and short in _SUMS:
            dtype = _I
    return like(v, _dtype(fact, dtype, keywords), rank)


_MEANS = frozenset({"mean", "std", "var", "norm", "nanmean", "logsumexp", "quantile"})
_SUMS = frozenset({"sum", "prod", "nansum"})


@rule("extreme")
def _extreme(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    if len(operands) > 1 and operands[1].kind is _T:
        return binary(context, v, operands[1])
    if len(operands) > 1 or "dim" in keywords or "axis" in keywords:
        return _pair_of(v, None if v.rank is None else max(v.rank - 1, 0))
    if "other" in keywords:
        return binary(context, v, keywords["other"])
    return like(v, None, 0)


def _pair_of(v: Value, rank: int | None) -> Value:
    return make(
        Kind.SEQUENCE, items=(like(v, None, rank), like(v, _I, rank)), cls="torch.return_types", certainty=_PROVEN
    )


@rule("pair")
def _pair(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return _pair_of(v, v.rank)


@rule("twin", "recurrent")
def _twin(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = like(_first_tensor(operands, keywords), _F)
    other = v if fact.result.rule == "twin" else make(Kind.SEQUENCE, element=v, certainty=_PROVEN)
    return make(Kind.SEQUENCE, items=(v, other), certainty=_PROVEN)


@rule("ambient")
def _ambient(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.TENSOR, context.ambient, fact.result.dtype or _U, certainty=_ASSUMED)


@rule("embeddings")
def _embeddings(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    if "convert_to_tensor" in keywords:
        return make(Kind.TENSOR, context.ambient, _F, certainty=_ASSUMED)
    return NDARRAY


@rule("list")
def _list(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first(operands, keywords)
    if v.kind in (Kind.SEQUENCE, Kind.ITERATOR):
        v = element(v)
    t = v if v.kind is _T else make(Kind.TENSOR, cls=v.cls if v.kind is Kind.UNKNOWN else None)
    return make(Kind.SEQUENCE, element=like(t, None, None, False), certainty=_PROVEN)


@rule("rows")
def _rows(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.SEQUENCE, element=element(_first_tensor(operands, keywords)), certainty=_PROVEN)


@rule("catlike", "stack")
def _cat(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first(operands, keywords)
    if v.kind is Kind.SEQUENCE and v.items:
        result = _like(context, fact, list(v.items), {})
        ranks = {item.rank for item in v.items}
    else:
        part = element(v)
        result = _like(context, fact, [part], {})
        ranks = {part.rank}
    rank = ranks.pop() if len(ranks) == 1 else None
    if rank is not None and fact.result.rule == "stack":
        rank += 1
    return like(result, None, rank)


# --- factories and moves -------------------------------------------------------------------------------------------


def place(context: Context, v: Value) -> tuple[Device, Certainty] | None:
    """Where ``device=v`` or ``.to(v)`` puts a tensor; None where ``v`` is no device."""
    kind = v.kind
    if kind is Kind.DEVICE or kind is _T:
        return v.device, v.certainty
    if kind is Kind.STRING:
        return (v.device, v.certainty) if v.device is not _NODEV else (context.ambient, _ASSUMED)
    if kind is _S:
        return _ACC if context.target.device != "cpu" else _HOST, _ASSUMED
    return None


def factory_device(context: Context, keywords: Keywords) -> Value:
    """A tensor of the device that a factory call names, or of the default device."""
    given = keywords.get("device")
    if given is None:
        default = getattr(context, "default_device", None)
        if default is not None:
            return make(Kind.TENSOR, default.device, certainty=default.certainty)
        return make(Kind.TENSOR, _HOST, certainty=_PROVEN)
    found = place(context, given)
    if found is not None and found[0] is not _NODEV:
        return make(Kind.TENSOR, found[0], certainty=found[1], reasons=given.reasons)
    if given.kind is Kind.UNKNOWN and given.cls is not None:
        return make(Kind.TENSOR, context.ambient, cls=given.cls, certainty=_ASSUMED)
    return make(Kind.TENSOR, context.ambient, certainty=_ASSUMED)


@rule("make")
def _make(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    rank = fact.result.rank
    short = fact.name.rpartition(".")[2]
    dtype = _F
    if short in ("arange", "range"):
        dtype = _I
        for v in operands:
            if v.kind is _S and v.dtype is _F:
                dtype = _F
            elif v.kind is not _S:
                dtype = v.dtype if v.kind is _T else _U
    elif short == "full":
        fill = operands[1] if len(operands) > 1 else keywords.get("fill_value", UNKNOWN)
        dtype = fill.dtype
    if rank is None:
        sizes = operands[:1] if short == "full" else operands
        if not sizes and "size" in keywords:
            sizes = [keywords["size"]]
        if len(sizes) == 1 and sizes[0].kind is Kind.SEQUENCE:
            rank = len(sizes[0].items) if sizes[0].items is not None else None
        elif sizes and all(v.kind is _S for v in sizes) and short != "randint":
            rank = len(sizes)
    return like(factory_device(context, keywords), _dtype(fact, dtype, keywords), rank)


@rule("makelike")
def _makelike(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    short = fact.name.rpartition(".")[2]
    where = factory_device(context, keywords) if "device" in keywords else v
    rank = v.rank if short.endswith("_like") else None
    return like(where, _dtype(fact, v.dtype, keywords), rank)


def _data_rank(v: Value, depth: int = 0) -> tuple[int | None, DTypeClass]:
    if v.kind is _S:
        return depth, v.dtype
    if v.kind is Kind.SEQUENCE and depth < 4:
        part = element(v)
        if part is not UNKNOWN:
            return _data_rank(part, depth + 1)
    return None, _U


@rule("data")
def _data(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first(operands, keywords)
    if v.kind is _T and "device" not in keywords:
        return like(v, _dtype(fact, v.dtype, keywords), v.rank)
    if v.kind is Kind.SEQUENCE and v.constant and v.items is None and v.element is None and "device" not in keywords:
        return make(Kind.TENSOR, dtype=_dtype(fact, _U, keywords))  # `torch.tensor([])`: a place for a later tensor
    rank, dtype = _data_rank(v) if v.kind is not _T else (v.rank, v.dtype)
    where = factory_device(context, keywords)
    if v.kind is Kind.UNKNOWN and "device" not in keywords and fact.name in ("torch.as_tensor", "torch.asarray"):
        where = make(Kind.TENSOR, cls=v.cls)  # a tensor stays where it is
    return like(where, _dtype(fact, dtype, keywords), rank)


@rule("parameter")
def _parameter(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    dtype = _F if v.dtype is _U else v.dtype
    return make(Kind.TENSOR, context.ambient, dtype, v.rank, certainty=_ASSUMED)


@rule("typeas")
def _typeas(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    other = _first_tensor(operands[1:], keywords)
    return make(
        Kind.TENSOR, other.device, other.dtype, v.rank, None, None, other.cls, False, True, other.certainty,
        other.reasons,
    )  # fmt: skip


@rule("move")
def _move(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    arguments = operands[1:]
    if "device" in keywords:
        arguments = [*arguments, keywords["device"]]
    if "other" in keywords:
        arguments = [*arguments, keywords["other"]]
    dtype = keywords["dtype"].dtype if "dtype" in keywords else v.dtype
    for argument in arguments:
        if argument.kind is Kind.DTYPE:
            dtype = argument.dtype
            continue
        found = place(context, argument)
        if found is not None:
            device, certainty = found
            if argument.kind is _T:
                dtype = argument.dtype
            reasons = argument.reasons or v.reasons
            v = make(Kind.TENSOR, device, v.dtype, v.rank, None, None, argument.cls, False, True, certainty, reasons)
        elif argument.kind is Kind.UNKNOWN:
            # a device or a dtype: nobody knows, but what was on the model's device normally stays there
            if "device" in keywords or v.device in (_HOST, _NODEV):
                v = make(Kind.TENSOR, context.ambient if "device" in keywords else _NODEV, v.dtype, v.rank, None, None,
                         argument.cls, False, True, _ASSUMED if "device" in keywords else Certainty.UNKNOWN,
                         v.reasons)  # fmt: skip
            dtype = _U
    return like(v, dtype, v.rank, False)


@rule("cuda")
def _cuda(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return placed(v, _ACC if context.target.device != "cpu" else _HOST, _PROVEN)


@rule("host")
def _host(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first_tensor(operands, keywords)
    return make(Kind.TENSOR, _HOST, v.dtype, v.rank, None, None, None, False, True, _PROVEN, v.reasons)


# --- plain results -------------------------------------------------------------------------------------------------


def _constant(value: Value) -> Rule:
    return lambda context, fact, operands, keywords: value


for _name, _value in {
    "unknown": UNKNOWN,
    "ndarray": NDARRAY,
    "string": STRING,
    "none": NONE,
    "sequence": SEQUENCE,
    "scalars": SCALARS,
    "strings": STRINGS,
    "mapping": MAPPING,
    "range": INTS,
    "generator": make(Kind.GENERATOR, certainty=_PROVEN),
    "stream": make(Kind.STREAM, certainty=_PROVEN),
    "tokenizer": make(Kind.TOKENIZER, certainty=_PROVEN),
    "config": make(Kind.CONFIG, certainty=_PROVEN),
    "dtype": make(Kind.DTYPE, certainty=_PROVEN),
}.items():
    RULES[_name] = _constant(_value)


@rule("scalar")
def _scalar(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    dtype = fact.result.dtype
    if dtype is None:
        v = _first(operands, keywords)
        return _SCALARS[v.dtype if v.kind in (_T, _S) else _U]
    return _SCALARS[dtype]


@rule("size")
def _size(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return INT if len(operands) > 1 or keywords else INTS


@rule("receiver", "first")
def _receiver(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return _first(operands, keywords)


@rule("element")
def _element(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return element(_first(operands, keywords))


@rule("iterator")
def _iterator(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.ITERATOR, element=_known(element(_first(operands, keywords))), certainty=_PROVEN)


@rule("listof")
def _listof(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    if not operands:
        return SEQUENCE
    v = operands[0]
    if v.kind is Kind.SEQUENCE and v.items is not None and fact.name in ("builtins.list", "builtins.tuple"):
        return make(Kind.SEQUENCE, items=v.items, element=v.element, fresh=True, certainty=_PROVEN)
    return make(Kind.SEQUENCE, element=_known(element(v)), fresh=True, certainty=_PROVEN)


@rule("sum")
def _sum(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    part = element(_first(operands, keywords))
    return like(part, None, part.rank) if part.kind is _T else SCALAR if part.kind is _S else UNKNOWN


@rule("choose")
def _choose(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    if len(operands) == 1:
        return element(operands[0])
    tensors = [v for v in operands if v.kind is _T]
    if tensors:
        return tensors[0]
    return joined(operands) or UNKNOWN


@rule("device")
def _device(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    v = _first(operands, keywords)
    found = place(context, v) if operands else None
    device, certainty = found if found is not None else (context.ambient, _ASSUMED)
    return make(Kind.DEVICE, device, certainty=certainty, constant=v.constant)


@rule("instance")
def _instance(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.INSTANCE, cls=fact.result.cls, fresh=True, certainty=_PROVEN)


@rule("module")
def _module(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.MODULE, _HOST, cls=fact.result.cls, fresh=True, certainty=_PROVEN)


@rule("class")
def _class(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.CLASS, cls=fact.result.cls, certainty=_PROVEN)


@rule("output")
def _output(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.INSTANCE, context.ambient, cls=fact.result.cls, certainty=_ASSUMED)


@rule("tokens")
def _tokens(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.TENSOR, context.ambient, _I, certainty=_ASSUMED)


@rule("encoding")
def _encoding(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    return make(Kind.ENCODING, _HOST, certainty=_ASSUMED)
