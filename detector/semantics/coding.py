"""Values as small plain tuples, for summaries that are kept on disk.

A reference to something outside is its text; any other value is a tuple of small numbers, strings and nested values.
Reasons, freshness and constancy belong to one line of one file and are left out.
"""

from __future__ import annotations

from typing import TypeAlias

from awp_lint.detector.semantics.values import Certainty, Device, DTypeClass, Kind, Value, make

Coded: TypeAlias = "str | tuple[object, ...]"

_KINDS = tuple(Kind)
_DEVICES = tuple(Device)
_DTYPES = tuple(DTypeClass)
_CERTAINTIES = tuple(Certainty)
_KIND_NUMBERS = {kind: number for number, kind in enumerate(_KINDS)}
_DEVICE_NUMBERS = {device: number for number, device in enumerate(_DEVICES)}
_DTYPE_NUMBERS = {dtype: number for number, dtype in enumerate(_DTYPES)}

_decoded: dict[Coded, Value] = {}
_LIMIT = 200_000


def encode(v: Value) -> Coded:
    """The plain form of a value."""
    if v.kind is Kind.UNKNOWN:
        return v.cls or ""
    head = (
        _KIND_NUMBERS[v.kind] * 64
        + _DEVICE_NUMBERS[v.device] * 16
        + _DTYPE_NUMBERS[v.dtype] * 4
        + int(v.certainty)
    )  # fmt: skip
    if v.element is None and v.items is None:
        if v.cls is None:
            return (head,) if v.rank is None else (head, v.rank)
        return (head, v.rank, v.cls)
    return (
        head,
        v.rank,
        v.cls,
        None if v.element is None else encode(v.element),
        None if v.items is None else tuple(encode(item) for item in v.items),
    )


def decode(coded: Coded) -> Value:
    """The value of a plain form. Values are shared: equal forms give the same object."""
    value = _decoded.get(coded)
    if value is None:
        if len(_decoded) > _LIMIT:
            _decoded.clear()
        value = _decoded[coded] = _decode(coded)
    return value


def _decode(coded: Coded) -> Value:
    if isinstance(coded, str):
        return make(Kind.UNKNOWN, cls=coded or None)
    head = coded[0]
    assert isinstance(head, int)
    rank = coded[1] if len(coded) > 1 else None
    cls = coded[2] if len(coded) > 2 else None
    element = items = None
    if len(coded) > 3:
        element, items = coded[3], coded[4]
    return make(
        _KINDS[head // 64],
        _DEVICES[head // 16 % 4],
        _DTYPES[head // 4 % 4],
        rank if isinstance(rank, int) else None,
        decode(element) if isinstance(element, str | tuple) else None,
        tuple(decode(item) for item in items) if isinstance(items, tuple) else None,
        cls if isinstance(cls, str) else None,
        certainty=_CERTAINTIES[head % 4],
    )
