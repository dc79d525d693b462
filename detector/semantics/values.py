"""What an expression may be at run time: the value lattice of the semantic model.

``Value()`` is the top element (nothing known). A rule asks :attr:`Value.on_device`, :attr:`Value.is_tensor` and
:attr:`Value.certainty`; the interpreter in :mod:`awp_lint.detector.semantics.interpret` computes values.
"""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass
from typing import Any


class Kind(enum.Enum):
    """The classes of run-time object that the rules tell apart."""

    __hash__ = object.__hash__  # that of Enum is written in Python, and tables by kind are asked all the time

    UNKNOWN = "unknown"
    TENSOR = "tensor"
    MODULE = "module"  # an nn.Module instance
    NDARRAY = "ndarray"
    SCALAR = "scalar"  # Python int, float, bool, complex
    STRING = "string"
    NONE = "none"
    SEQUENCE = "sequence"  # list, tuple, set, ModuleList, torch.Size; `element` joins the items
    MAPPING = "mapping"  # dict, ModuleDict; `element` joins the values
    TOKENIZER = "tokenizer"  # tokenizers and processors
    ENCODING = "encoding"  # what a tokenizer returns (BatchEncoding, BatchFeature)
    CONFIG = "config"
    GENERATOR = "generator"  # torch.Generator
    ITERATOR = "iterator"  # a Python generator or iterator; `element` is what it yields
    CALLABLE = "callable"  # a function or bound method; `cls` is its dotted name
    CLASS = "class"  # a class object; `cls` is its dotted name
    INSTANCE = "instance"  # an object of a known class that is none of the above
    DEVICE = "device"
    DTYPE = "dtype"
    STREAM = "stream"  # CUDA streams and events
    EXTERNAL = "external"  # a module object (``torch``, ``np``); `cls` is its dotted name


class Device(enum.Enum):
    """Where a tensor lives. AMBIENT follows the model or its inputs: the accelerator, unless the target is a CPU."""

    __hash__ = object.__hash__

    ACCELERATOR = "accelerator"
    HOST = "host"
    AMBIENT = "ambient"
    UNKNOWN = "unknown"


class DTypeClass(enum.Enum):
    """The class of a tensor's elements."""

    __hash__ = object.__hash__

    BOOL = "bool"
    INT = "int"
    FLOAT = "float"
    UNKNOWN = "unknown"


class Certainty(enum.IntEnum):
    """How well a fact is founded: by convention or several branches (ASSUMED), or by the code itself (PROVEN)."""

    UNKNOWN = 0
    ASSUMED = 1
    PROVEN = 2


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a value is what it is, for a person: ``returned by self.model(...)``, line 41."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Value:
    """An abstract value. Every field defaults to "not known"."""

    kind: Kind = Kind.UNKNOWN
    device: Device = Device.UNKNOWN
    dtype: DTypeClass = DTypeClass.UNKNOWN
    rank: int | None = None  # number of dimensions; 0 is a 0-d tensor
    element: Value | None = None  # of sequences, mappings, iterators
    items: tuple[Value, ...] | None = None  # of tuples whose length is known
    cls: str | None = None  # dotted name of the class (MODULE, INSTANCE, CLASS) or function (CALLABLE)
    constant: bool = False  # a literal, or built from literals alone
    fresh: bool = False  # made by this expression: no alias can exist
    certainty: Certainty = Certainty.UNKNOWN
    reasons: tuple[Reason, ...] = ()

    def __eq__(self, other: object) -> bool:
        """Equal in every field; most values that are compared are the same object or differ in kind."""
        if self is other:
            return True
        if other.__class__ is not Value:
            return NotImplemented
        assert isinstance(other, Value)
        return (
            self.kind is other.kind
            and self.cls == other.cls
            and self.device is other.device
            and self.dtype is other.dtype
            and self.rank == other.rank
            and self.certainty is other.certainty
            and self.constant == other.constant
            and self.fresh == other.fresh
            and self.items == other.items
            and self.element == other.element
            and self.reasons == other.reasons
        )

    @property
    def is_tensor(self) -> bool:
        """A tensor, wherever it lives."""
        return self.kind is Kind.TENSOR

    @property
    def on_device(self) -> bool:
        """A tensor on the accelerator, proven or ambient (not UNKNOWN, not HOST)."""
        return self.kind is Kind.TENSOR and self.device in (Device.ACCELERATOR, Device.AMBIENT)

    @property
    def on_host(self) -> bool:
        """Known to live on the host: a host tensor, an ndarray, a Python object."""
        if self.kind is Kind.TENSOR:
            return self.device is Device.HOST
        return self.kind not in (Kind.UNKNOWN, Kind.MODULE, Kind.ENCODING, Kind.INSTANCE, Kind.SEQUENCE, Kind.MAPPING)

    def because(self, line: int, text: str) -> Value:
        """The same value with one more reason, newest first, at most four kept."""
        return make(
            self.kind, self.device, self.dtype, self.rank, self.element, self.items, self.cls, self.constant,
            self.fresh, self.certainty, (Reason(line, text), *self.reasons)[:4],
        )  # fmt: skip


UNKNOWN = Value()


class _Open:
    """A value while it is made: fields of frozen objects can be set only at a multiple of the cost."""

    __slots__ = Value.__slots__


def make(
    kind: Kind,
    device: Device = Device.UNKNOWN,
    dtype: DTypeClass = DTypeClass.UNKNOWN,
    rank: int | None = None,
    element: Value | None = None,
    items: tuple[Value, ...] | None = None,
    cls: str | None = None,
    constant: bool = False,
    fresh: bool = False,
    certainty: Certainty = Certainty.UNKNOWN,
    reasons: tuple[Reason, ...] = (),
) -> Value:
    """``Value(...)`` at a quarter of the cost of a frozen dataclass's constructor: the interpreter makes one a node."""
    value: Any = _Open()
    value.kind = kind
    value.device = device
    value.dtype = dtype
    value.rank = rank
    value.element = element
    value.items = items
    value.cls = cls
    value.constant = constant
    value.fresh = fresh
    value.certainty = certainty
    value.reasons = reasons
    value.__class__ = Value
    return value  # type: ignore[no-any-return]


def held(v: Value) -> Value | None:
    """What a container holds, its items joined; None where nothing is known of it."""
    if v.element is not None or not v.items:
        return v.element
    return functools.reduce(join, v.items)


def _same(a: object, b: object, other: object) -> object:
    return a if a == b else other


def _sure(v: Value, certainty: Certainty) -> Value:
    if v.certainty is certainty and not v.constant and not v.fresh:
        return v
    return make(v.kind, v.device, v.dtype, v.rank, v.element, v.items, v.cls, False, False, certainty, v.reasons)


def _doubted(tensor: Value, other: Value) -> Value:
    certainty = Certainty.UNKNOWN if other.cls is None else min(tensor.certainty, Certainty.ASSUMED)
    return _sure(tensor, certainty)


def join(a: Value, b: Value) -> Value:
    """The least value that covers both: what holds after two branches meet.

    Kinds that differ give UNKNOWN, with two exceptions. None joined with anything keeps the other at ASSUMED, because
    optional arguments and caches are normally present where the hot code runs. A tensor joined with something unknown
    stays a tensor of unknown certainty: worth a finding at the lowest confidence, no more; joined with a deferred
    reference (:mod:`.interpret.references`) it stays an assumed tensor.
    """
    if a == b:
        return a
    if a.kind is Kind.NONE or b.kind is Kind.NONE:
        other = b if a.kind is Kind.NONE else a
        return _sure(other, min(other.certainty, Certainty.ASSUMED))
    if a.kind is not b.kind:
        if a.kind is Kind.TENSOR and b.kind is Kind.UNKNOWN:
            return _doubted(a, b)
        if b.kind is Kind.TENSOR and a.kind is Kind.UNKNOWN:
            return _doubted(b, a)
        return UNKNOWN
    device = a.device
    certainty = min(a.certainty, b.certainty)
    if a.device is not b.device:
        pair = {a.device, b.device}
        if pair == {Device.ACCELERATOR, Device.AMBIENT}:
            device = Device.AMBIENT
        else:
            device = Device.UNKNOWN
            certainty = Certainty.UNKNOWN
    dtype = _same(a.dtype, b.dtype, DTypeClass.UNKNOWN)
    assert isinstance(dtype, DTypeClass)
    items = None
    if a.items is not None and b.items is not None and len(a.items) == len(b.items):
        items = tuple(join(x, y) for x, y in zip(a.items, b.items, strict=True))
    left, right = a.element, b.element
    if items is None:
        left, right = held(a), held(b)
    # an empty literal on one side says nothing about the items
    element = join(left, right) if left is not None and right is not None else left or right
    return make(
        kind=a.kind,
        device=device,
        dtype=dtype,
        rank=a.rank if a.rank == b.rank else None,
        element=element,
        items=items,
        cls=a.cls if a.cls == b.cls else None,
        constant=a.constant and b.constant,
        fresh=a.fresh and b.fresh,
        certainty=certainty,
        reasons=a.reasons or b.reasons,
    )
