"""The arithmetic of one operator, by its name and the shapes of its inputs as torch.profiler notes them.

A multiplication and the addition behind it are two operations. What counts is what the result needs: of causal
attention the pairs of positions that see each other, whatever the kernel does with the others. Pointwise work, norms
and softmax are left out, as MFU leaves them out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

PRODUCT, ATTENTION, CONVOLUTION, RECURRENT = "matrix product", "attention", "convolution", "recurrent"

Shape = Sequence[int]


@dataclass(frozen=True, slots=True)
class Inputs:
    """An operator's arguments in order: shapes (of lists of tensors, lists of shapes), dtypes as C++ names them, and
    the values of what is no tensor, as text ("" where it was not noted)."""

    shapes: Sequence[Any]
    types: Sequence[str]
    values: Sequence[str] = ()

    def tensor(self, place: int) -> Shape | None:
        """The shape of the tensor at ``place``; None where there is none, or one without a shape (nested, 0-d)."""
        found = self.shapes[place] if place < len(self.shapes) else None
        plain = isinstance(found, list) and found and all(type(size) is int and size >= 0 for size in found)
        return found if plain else None

    def value(self, place: int) -> str:
        """The text of the value at ``place``."""
        return str(self.values[place]) if place < len(self.values) else ""

    def sizes(self, place: int, count: int) -> list[int] | None:
        """``count`` numbers at ``place``; one stands for all."""
        text = self.value(place)
        if not re.fullmatch(r"\[[\d, -]*\]|-?\d+", text):
            return None
        found = [int(number) for number in re.findall(r"-?\d+", text)]
        found = found * count if len(found) == 1 else found
        return found if len(found) == count else None


@dataclass(frozen=True, slots=True)
class Count:
    """``dtype``: bf16, fp16, fp32, fp64, fp8 or int8, of the operands. ``bytes``: operands and result once each, the
    least that can move."""

    kind: str
    flops: int
    bytes: int
    dtype: str


_DTYPES: tuple[tuple[str, str, int], ...] = (
    ("BFloat16", "bf16", 2), ("Half", "fp16", 2), ("Float8", "fp8", 1), ("float", "fp32", 4), ("double", "fp64", 8),
    ("signed char", "int8", 1),
)  # fmt: skip


def _dtype(name: str) -> tuple[str, int] | None:
    """The dtype's short name and bytes an element; None for others, complex ones among them."""
    if "complex" in name:
        return None
    return next(((short, size) for word, short, size in _DTYPES if word in name), None)


_Sized = tuple[int, int]  # operations, elements of operands and result
_Rule = Callable[[Inputs], "_Sized | None"]


def _plain(left: int, right: int) -> _Rule:
    """Matrix products (m, k) × (k, n), batched or not, and products with vectors."""

    def count(inputs: Inputs) -> _Sized | None:
        a, b = inputs.tensor(left), inputs.tensor(right)
        if a is None or b is None or len(a) > 3 or len(b) > 3:
            return None
        if len(b) == 1:  # matrix × vector, or vector × vector
            return (2 * math.prod(a), math.prod(a) + b[0] + (a[0] if len(a) == 2 else 1)) if a[-1] == b[0] else None
        if len(a) != len(b) or a[-1] != b[-2] or a[:-2] != b[:-2]:
            return None
        rows = math.prod(a[:-1])
        return 2 * rows * a[-1] * b[-1], math.prod(a) + math.prod(b) + rows * b[-1]

    return count


def _rows(inputs: Inputs) -> _Sized | None:
    """x (…, k) × weight (n, k), as ``linear`` and its like have them."""
    x, weight = inputs.tensor(0), inputs.tensor(1)
    if x is None or weight is None or len(weight) != 2 or x[-1] != weight[-1]:
        return None
    rows = math.prod(x[:-1])
    return 2 * rows * x[-1] * weight[0], math.prod(x) + math.prod(weight) + rows * weight[0]


def _grouped(inputs: Inputs) -> _Sized | None:
    """Products of groups of rows (or columns) with a matrix each: each row belongs to one group."""
    a, b = inputs.tensor(0), inputs.tensor(1)
    if a is None or b is None or a[-1] != b[-2]:
        return None
    groups = a[0] if len(a) == len(b) == 3 else 1
    if len(a) == len(b) == 3 and a[0] != b[0]:
        return None
    return 2 * groups * a[-2] * a[-1] * b[-1], math.prod(a) + math.prod(b) + groups * a[-2] * b[-1]


def _pairs(queries: int, keys: int, causal: str) -> int:
    """Pairs of positions that attend: all, or of causal attention those below the diagonal, aligned at a corner."""
    if not causal:
        return queries * keys
    first = 1 if causal == "upper left" else keys - queries + 1  # keys that the first query sees
    whole = max(0, min(queries, keys - first))  # queries before the one that sees all keys
    hidden = max(0, min(whole, 1 - first))  # that see none
    seen = whole - hidden
    low = first + hidden
    return seen * low + seen * (seen - 1) // 2 + (queries - whole) * keys


def _attention(causal: int, heads_first: bool = True, corner: str = "upper left", none: int | None = None) -> _Rule:
    """query, key, value first; ``causal`` is the place of the flag. Sequences of many lengths packed into one
    (cumulated lengths at ``none``) cannot be counted."""

    def count(inputs: Inputs) -> _Sized | None:
        query, key, value = inputs.tensor(0), inputs.tensor(1), inputs.tensor(2)
        if query is None or key is None or value is None or min(len(query), len(key), len(value)) < 2:
            return None
        if none is not None and inputs.tensor(none) is not None:
            return None
        flag = inputs.value(causal)
        if flag not in ("True", "False", "0", "1", "2"):
            return None
        where = {"True": corner, "1": "upper left", "2": "lower right"}.get(flag, "")
        if heads_first:
            batch, queries, keys = math.prod(query[:-2]), query[-2], key[-2]
        elif len(query) == len(key) == 4:
            batch, queries, keys = query[0] * query[2], query[1], key[1]
        else:
            return None
        pairs = _pairs(queries, keys, where)
        result = math.prod(query[:-1]) * value[-1]
        elements = math.prod(query) + math.prod(key) + math.prod(value) + result
        return 2 * batch * pairs * (query[-1] + value[-1]), elements

    return count


@dataclass(frozen=True, slots=True)
class _Convolution:
    """Places of a convolution's settings among its arguments; ``transposed`` -1 where it has none. The number of
    groups is in the weight's shape."""

    stride: int
    padding: int
    dilation: int
    transposed: int = -1

    def __call__(self, inputs: Inputs) -> _Sized | None:
        x, weight = inputs.tensor(0), inputs.tensor(1)
        if x is None or weight is None or len(x) != len(weight) or len(x) < 3:
            return None
        space, window = x[2:], weight[2:]
        if self.transposed >= 0 and inputs.value(self.transposed) not in ("True", "False"):
            return None
        if self.transposed >= 0 and inputs.value(self.transposed) == "True":
            # each element of the input meets the whole window of its group's outputs
            flops = 2 * math.prod(x) * weight[1] * math.prod(window)
            return flops, math.prod(x) + math.prod(weight)
        count = len(space)
        stride, padding, dilation = (inputs.sizes(p, count) for p in (self.stride, self.padding, self.dilation))
        if stride is None or padding is None or dilation is None or not all(stride):
            return None
        out = [
            (size + 2 * pad - far * (wide - 1) - 1) // step + 1
            for size, wide, step, pad, far in zip(space, window, stride, padding, dilation, strict=True)
        ]
        if min(out) < 0:
            return None
        results = x[0] * weight[0] * math.prod(out)
        return 2 * results * math.prod(weight[1:]), math.prod(x) + math.prod(weight) + results


def _recurrent(inputs: Inputs) -> _Sized | None:
    """Each step of each sequence meets every weight matrix once: input's, hidden state's and projection's."""
    x = inputs.tensor(0)
    lists = [s for s in inputs.shapes if isinstance(s, list) and s and all(isinstance(one, list) for one in s)]
    weights = [shape for shapes in lists[-1:] for shape in shapes if len(shape) == 2]
    if x is None or not weights:
        return None
    steps = math.prod(x[:-1])
    size = sum(math.prod(shape) for shape in weights)
    return 2 * steps * size, math.prod(x) + size


# Operator without namespace's "aten::" and without the underscore of in-place forms → kind, argument that gives the
# dtype, rule. Of operators within each other the outermost counts.
_RULES: Mapping[str, tuple[str, int, _Rule]] = {
    **dict.fromkeys(("mm", "bmm", "mv", "dot", "vdot", "_int_mm", "_scaled_mm"), (PRODUCT, 0, _plain(0, 1))),
    **dict.fromkeys(("addmm", "_addmm_activation", "baddbmm", "addbmm", "addmv"), (PRODUCT, 1, _plain(1, 2))),
    **dict.fromkeys(("linear", "mkldnn_linear", "_mps_linear", "_weight_int8pack_mm", "mkldnn::_linear_pointwise"),
                    (PRODUCT, 0, _rows)),
    **dict.fromkeys(("_grouped_mm", "_scaled_grouped_mm"), (PRODUCT, 0, _grouped)),
    **{name: (ATTENTION, 0, _attention(place)) for name, place in (
        ("scaled_dot_product_attention", 5), ("_scaled_dot_product_attention_math", 5),
        ("_scaled_dot_product_flash_attention", 4), ("_scaled_dot_product_flash_attention_for_cpu", 4),
        ("_scaled_dot_product_efficient_attention", 6), ("_scaled_dot_product_cudnn_attention", 6),
        ("_scaled_dot_product_fused_attention_overrideable", 5))},
    "_flash_attention_forward": (ATTENTION, 0, _attention(8, heads_first=False, none=3)),
    "_efficient_attention_forward": (ATTENTION, 0, _attention(9, heads_first=False, none=4)),
    "flash_attn::_flash_attn_forward": (ATTENTION, 0, _attention(5, heads_first=False, corner="lower right")),
    **dict.fromkeys(("convolution", "_convolution", "convolution_overrideable"),
                    (CONVOLUTION, 0, _Convolution(3, 4, 5, 6))),
    **dict.fromkeys(("mkldnn_convolution", "mkldnn::_convolution_pointwise", "miopen_convolution"),
                    (CONVOLUTION, 0, _Convolution(4, 3, 5))),
    "cudnn_convolution": (CONVOLUTION, 0, _Convolution(3, 2, 4)),
    **dict.fromkeys(("cudnn_convolution_relu", "miopen_convolution_relu"), (CONVOLUTION, 0, _Convolution(3, 4, 5))),
    "_conv_depthwise2d": (CONVOLUTION, 0, _Convolution(4, 5, 6)),
    **dict.fromkeys(("lstm", "gru", "rnn_tanh", "rnn_relu", "_cudnn_rnn"), (RECURRENT, 0, _recurrent)),
}  # fmt: skip

# Operators of others that surely compute, and that no rule reads.
_SUSPECT = re.compile(r"gem[mv]|matmul|linear|attention|attn|fmha|conv|(?:^|_)mm(?:_|$)|moe|rnn|lstm", re.IGNORECASE)


def known(name: str) -> bool:
    """Whether there is a rule for the operator."""
    return _plain_name(name) in _RULES


def suspect(name: str) -> bool:
    """Whether an operator for which there is no rule looks as though it computed what counts."""
    space, _, word = name.rpartition("::")
    if space in ("", "aten", "prim"):
        return word == "_weight_int4pack_mm" or word.startswith("mkldnn_rnn")
    return not known(name) and _SUSPECT.search(word) is not None


def count(name: str, inputs: Inputs) -> Count | None:
    """The operator's arithmetic; None where its shapes or values do not tell, or no rule knows it."""
    found = _RULES.get(_plain_name(name))
    if found is None:
        return None
    kind, place, rule = found
    dtype = _dtype(inputs.types[place]) if place < len(inputs.types) else None
    sized = rule(inputs)
    if dtype is None or sized is None:
        return None
    return Count(kind, sized[0], sized[1] * dtype[1], dtype[0])


def _plain_name(name: str) -> str:
    plain = name.removeprefix("aten::")
    return plain if plain in _RULES else plain.rstrip("_")
