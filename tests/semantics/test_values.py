"""The value lattice: joins, properties, plain forms."""

from __future__ import annotations

import itertools

import pytest

from awp_lint.detector.semantics.coding import decode, encode
from awp_lint.detector.semantics.values import (
    UNKNOWN,
    Certainty,
    Device,
    DTypeClass,
    Kind,
    Reason,
    Value,
    join,
    make,
)

PROVEN, ASSUMED = Certainty.PROVEN, Certainty.ASSUMED
CUDA = Value(Kind.TENSOR, Device.ACCELERATOR, DTypeClass.FLOAT, 2, certainty=PROVEN)
HOST = Value(Kind.TENSOR, Device.HOST, DTypeClass.FLOAT, 2, certainty=PROVEN)
AMBIENT = Value(Kind.TENSOR, Device.AMBIENT, DTypeClass.INT, 1, certainty=ASSUMED)
NONE = Value(Kind.NONE, certainty=PROVEN)
INT = Value(Kind.SCALAR, dtype=DTypeClass.INT, certainty=PROVEN)
PAIR = Value(Kind.SEQUENCE, items=(CUDA, INT), certainty=PROVEN)
LIST = Value(Kind.SEQUENCE, element=CUDA, certainty=PROVEN)
EMPTY = Value(Kind.SEQUENCE, certainty=PROVEN)
MODEL = Value(Kind.MODULE, Device.AMBIENT, cls="pkg.Model", certainty=ASSUMED)
ALL = (CUDA, HOST, AMBIENT, NONE, INT, PAIR, LIST, EMPTY, MODEL, UNKNOWN)


def test_make_is_the_constructor() -> None:
    arguments = (
        Kind.TENSOR, Device.HOST, DTypeClass.BOOL, 0, CUDA, (HOST,), "c", True, True, ASSUMED, (Reason(1, "r"),)
    )  # fmt: skip
    assert make(*arguments) == Value(*arguments)
    assert make(Kind.NONE) == Value(Kind.NONE)
    assert hash(make(Kind.NONE)) == hash(Value(Kind.NONE))


@pytest.mark.parametrize("value", ALL)
def test_join_with_itself_changes_nothing(value: Value) -> None:
    assert join(value, value) is value


@pytest.mark.parametrize(("a", "b"), list(itertools.combinations(ALL, 2)))
def test_join_does_not_depend_on_the_order(a: Value, b: Value) -> None:
    left, right = join(a, b), join(b, a)
    assert (left.kind, left.device, left.dtype, left.rank, left.certainty, left.element, left.items, left.cls) == (
        right.kind, right.device, right.dtype, right.rank, right.certainty, right.element, right.items, right.cls,
    )  # fmt: skip


def test_devices_join() -> None:
    assert join(CUDA, HOST).device is Device.UNKNOWN
    assert join(CUDA, HOST).certainty is Certainty.UNKNOWN
    mixed = join(CUDA, AMBIENT)
    assert (mixed.device, mixed.dtype, mixed.rank, mixed.certainty) == (
        Device.AMBIENT, DTypeClass.UNKNOWN, None, ASSUMED,
    )  # fmt: skip


def test_none_and_unknown_weaken_a_tensor() -> None:
    optional = join(NONE, CUDA)
    assert optional.on_device and optional.certainty is ASSUMED
    doubtful = join(UNKNOWN, CUDA)
    assert doubtful.on_device and doubtful.certainty is Certainty.UNKNOWN
    assert join(UNKNOWN, INT) == UNKNOWN
    assert join(CUDA, INT) == UNKNOWN


def test_containers_join() -> None:
    assert join(EMPTY, LIST).element == CUDA
    longer = Value(Kind.SEQUENCE, items=(CUDA, CUDA, CUDA), certainty=PROVEN)
    shorter = Value(Kind.SEQUENCE, items=(CUDA,), certainty=PROVEN)
    both = join(longer, shorter)
    assert both.items is None and both.element == CUDA
    same = join(PAIR, Value(Kind.SEQUENCE, items=(AMBIENT, INT), certainty=PROVEN))
    assert same.items is not None and same.items[0].device is Device.AMBIENT and same.items[1] == INT


def test_where_values_live() -> None:
    assert CUDA.on_device and AMBIENT.on_device and not HOST.on_device and not UNKNOWN.on_device
    assert HOST.on_host and INT.on_host and not MODEL.on_host and not UNKNOWN.on_host


def test_reasons_are_newest_first_and_few() -> None:
    value = CUDA
    for line in range(6):
        value = value.because(line, f"r{line}")
    assert [reason.line for reason in value.reasons] == [5, 4, 3, 2]
    assert value.kind is Kind.TENSOR and value.rank == 2


@pytest.mark.parametrize("value", [*ALL, Value(Kind.UNKNOWN, cls="<a.B>.c(t)"), Value(Kind.DEVICE, Device.HOST)])
def test_plain_form_and_back(value: Value) -> None:
    assert decode(encode(value)) == value
    assert decode(encode(value)) is decode(encode(value))


def test_plain_form_leaves_out_what_belongs_to_a_line() -> None:
    value = make(Kind.TENSOR, Device.HOST, constant=True, fresh=True, reasons=(Reason(1, "r"),))
    assert decode(encode(value)) == make(Kind.TENSOR, Device.HOST)
