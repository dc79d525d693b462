"""Deferred references: how a summary names a value that only the whole project can tell.

An UNKNOWN value may carry a reference in ``cls``: a root and the operations applied to it, as text.

====================  ==============================================================
``pkg.mod.name``      root: what the dotted name means
``<pkg.mod.Class>``   root: an instance of the class
``pkg.mod.f:x``       root: the parameter ``x`` of a function
``.name``             attribute
``.name(ts)``         method call; letters stand for the arguments (:data:`LETTERS`)
``(ts)``              call
``[]`` ``[2]``        an item, the item at a constant position
``[:]``               a slice
``~``                 arithmetic with something else
``?``                 comparison with something else
====================  ==============================================================
"""

from __future__ import annotations

import re

from awp_lint.detector.semantics.values import UNKNOWN, Certainty, Device, DTypeClass, Kind, Value, make

_P, _A = Certainty.PROVEN, Certainty.ASSUMED

LETTERS: dict[str, Value] = {
    "t": make(Kind.TENSOR, Device.AMBIENT, certainty=_A),
    "T": make(Kind.TENSOR, Device.HOST, certainty=_A),
    "s": make(Kind.SCALAR, certainty=_P),
    "n": make(Kind.NONE, certainty=_P),
    "l": make(Kind.SEQUENCE, certainty=_P),
    "S": make(Kind.STRING, certainty=_P),
    "h": make(Kind.DEVICE, Device.HOST, certainty=_P),
    "c": make(Kind.DEVICE, Device.ACCELERATOR, certainty=_P),
    "a": make(Kind.DEVICE, Device.AMBIENT, certainty=_A),
    "f": make(Kind.DTYPE, dtype=DTypeClass.FLOAT, certainty=_P),
    "i": make(Kind.DTYPE, dtype=DTypeClass.INT, certainty=_P),
    "b": make(Kind.DTYPE, dtype=DTypeClass.BOOL, certainty=_P),
    "d": make(Kind.DTYPE, certainty=_P),
    "u": UNKNOWN,
}
_KEYWORDS = {"k": "dim", "r": "return_tensors"}
_DTYPE_LETTERS = {DTypeClass.FLOAT: "f", DTypeClass.INT: "i", DTypeClass.BOOL: "b", DTypeClass.UNKNOWN: "d"}
_DEVICE_LETTERS = {Device.HOST: "h", Device.ACCELERATOR: "c", Device.AMBIENT: "a", Device.UNKNOWN: "a"}
_KIND_LETTERS = {Kind.SCALAR: "s", Kind.NONE: "n", Kind.SEQUENCE: "l"}


def letter(v: Value) -> str:
    """The letter for an argument."""
    kind = v.kind
    if kind is Kind.TENSOR:
        return "T" if v.device is Device.HOST else "t"
    if kind is Kind.DEVICE:
        return "a" if v.certainty is Certainty.UNKNOWN else _DEVICE_LETTERS[v.device]
    if kind is Kind.STRING:
        return "S" if v.device is Device.UNKNOWN else _DEVICE_LETTERS[v.device]
    if kind is Kind.DTYPE:
        return _DTYPE_LETTERS[v.dtype]
    return _KIND_LETTERS.get(kind, "u")


def encode(operands: list[Value], keywords: dict[str, Value]) -> str:
    """The letters of a call's arguments; of keywords only those that decide about results."""
    text = "".join([letter(v) for v in operands[:4]])
    if keywords:
        if "dim" in keywords or "axis" in keywords:
            text += "k"
        if "return_tensors" in keywords:
            text += "r"
        if "device" in keywords:
            text += letter(keywords["device"])
        if "dtype" in keywords:
            text += letter(keywords["dtype"])
        if "t" not in text and any(v.on_device for v in keywords.values()):
            text += "t"
    return text


def decode(text: str) -> tuple[list[Value], dict[str, Value]]:
    """The arguments that letters stand for."""
    operands = [LETTERS[c] for c in text if c not in _KEYWORDS]
    keywords = {_KEYWORDS[c]: LETTERS["s"] for c in text if c in _KEYWORDS}
    return operands, keywords


_ROOT = re.compile(r"<[^>]*>|[\w.]+(?::\w+)?")
_OPERATION = re.compile(
    r"\.(?P<method>\w+)\((?P<m>\w*)\)|\.(?P<attribute>\w+)|\((?P<call>\w*)\)|\[(?P<item>-?\d*|:)\]|(?P<sign>[~?])"
)


def split(reference: str) -> tuple[str, list[tuple[str, str]]] | None:
    """Root and operations of a reference: pairs of (operation, name or letters); None where it cannot be read."""
    found = _ROOT.match(reference)
    if found is None:
        return None
    at = found.end()
    operations: list[tuple[str, str]] = []
    while at < len(reference):
        step = _OPERATION.match(reference, at)
        if step is None:
            return None
        at = step.end()
        if step["method"] is not None:
            operations.append((step["method"], step["m"]))
        elif step["attribute"] is not None:
            operations.append((".", step["attribute"]))
        elif step["call"] is not None:
            operations.append(("()", step["call"]))
        elif step["item"] is not None:
            operations.append(("[]", step["item"]))
        else:
            operations.append((step["sign"], ""))
    return found.group(), operations
