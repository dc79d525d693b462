"""Arithmetic on values: what operators, comparison and iteration make of tensors and of what holds them."""

from __future__ import annotations

import functools
from collections.abc import Sequence

from awp_lint.detector.semantics.interpret.machine import Context
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
BY_DTYPE = {_I: INT, _F: FLOAT, _B: BOOL, _U: SCALAR}


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
    if v.kind is Kind.UNKNOWN and v.cls is not None and fits(v.cls):
        return reference(v.cls + operation)
    return UNKNOWN


#: Characters of the longest reference that was asked to grow, since somebody put 0 here.
longest = [0]


def fits(reference: str) -> bool:
    """Whether a reference may still grow."""
    length = len(reference)
    if length > longest[0]:
        longest[0] = length
    return length < MAX_REFERENCE


@functools.lru_cache(maxsize=20_000)
def reference(text: str) -> Value:
    """The value of a deferred reference; the same text gives the same object."""
    return make(Kind.UNKNOWN, cls=text)


def placed(v: Value, device: Device, certainty: Certainty) -> Value:
    """The same tensor on another device."""
    return make(v.kind, device, v.dtype, v.rank, v.element, v.items, v.cls, False, True, certainty, v.reasons)


def tensor_of(v: Value) -> Value | None:
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
    for host, other in ((a, b), (b, a)):
        guessed = other.device is not _HOST and other.certainty is not _PROVEN
        if guessed and host.device is _HOST and host.rank and host.certainty is _PROVEN:
            return _HOST, _ASSUMED, host  # only a 0-d tensor may be of another device: the guess was wrong
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
            if bitwise and _HOST in (a.device, b.device) and device is _AMB and certainty is not _PROVEN:
                # masks of one device: what is known of one holds for the other
                device, source = _HOST, a if a.device is _HOST else b
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
        return BY_DTYPE[_F if division else promote(a.dtype, b.dtype)]
    if ka is Kind.STRING:
        return STRING
    if ka is Kind.SEQUENCE:
        if kb is Kind.SEQUENCE:
            if a.items is not None and b.items is not None and len(a.items) + len(b.items) <= 16:
                return make(Kind.SEQUENCE, items=a.items + b.items, certainty=_PROVEN)
            return make(Kind.SEQUENCE, element=_either(element(a), element(b)), certainty=_PROVEN)
        return make(Kind.SEQUENCE, element=known(element(a)), certainty=_PROVEN)
    if kb is Kind.SEQUENCE and ka is _S:
        return make(Kind.SEQUENCE, element=known(element(b)), certainty=_PROVEN)
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


def known(v: Value | None) -> Value | None:
    return None if v is None or v == UNKNOWN else v


def _either(a: Value | None, b: Value | None) -> Value | None:
    if a is None or b is None:
        return a or b
    return known(join(a, b))


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
    if v is SCALAR:  # a number cannot be gone through: this one stood for a list in what `tolist` gave
        return v
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
