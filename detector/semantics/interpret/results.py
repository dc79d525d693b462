"""What a call of a library function returns: the meaning of each result rule of the facts' tables."""

from __future__ import annotations

from collections.abc import Callable

from awp_lint.detector.semantics.interpret.machine import NONE, Args, Context, Keywords
from awp_lint.detector.semantics.interpret.tensors import (
    BY_DTYPE,
    INT,
    INTS,
    MAPPING,
    NDARRAY,
    SCALAR,
    SCALARS,
    SEQUENCE,
    STRING,
    STRINGS,
    binary,
    element,
    joined,
    known,
    like,
    placed,
    promote,
    tensor_of,
    together,
)
from awp_lint.detector.semantics.library import Fact
from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, make

_T, _S = Kind.TENSOR, Kind.SCALAR
_ACC, _HOST, _AMB, _NODEV = Device.ACCELERATOR, Device.HOST, Device.AMBIENT, Device.UNKNOWN
_F, _I, _B, _U = DTypeClass.FLOAT, DTypeClass.INT, DTypeClass.BOOL, DTypeClass.UNKNOWN
_PROVEN, _ASSUMED = Certainty.PROVEN, Certainty.ASSUMED

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
        t = tensor_of(v)
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


@rule("scalars")
def _scalars(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    """``x.tolist()``: lists in a list where the tensor has several dimensions."""
    v = _first_tensor(operands, keywords)
    found = SCALARS
    for _ in range((v.rank or 1) - 1):
        found = make(Kind.SEQUENCE, element=found, certainty=Certainty.PROVEN)
    return found


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
        return BY_DTYPE[v.dtype if v.kind in (_T, _S) else _U]
    return BY_DTYPE[dtype]


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
    return make(Kind.ITERATOR, element=known(element(_first(operands, keywords))), certainty=_PROVEN)


@rule("listof")
def _listof(context: Context, fact: Fact, operands: Args, keywords: Keywords) -> Value:
    if not operands:
        return SEQUENCE
    v = operands[0]
    if v.kind is Kind.SEQUENCE and v.items is not None and fact.name in ("builtins.list", "builtins.tuple"):
        return make(Kind.SEQUENCE, items=v.items, element=v.element, fresh=True, certainty=_PROVEN)
    return make(Kind.SEQUENCE, element=known(element(v)), fresh=True, certainty=_PROVEN)


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
