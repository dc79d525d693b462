"""FLOPs of single operators, by shapes as torch.profiler notes them, against figures worked out by hand."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from awp_lint.detector.profiling.arithmetic.operators import Inputs, count, known, suspect


def flops(name: str, shapes: list[Any], values: list[str] | None = None, dtype: str = "float") -> int | None:
    found = count(name, Inputs(shapes, [dtype] * len(shapes), values or [""] * len(shapes)))
    return found.flops if found is not None else None


@pytest.mark.parametrize(
    ("name", "shapes", "expected"),
    [
        ("aten::linear", [[2, 3, 16], [32, 16], [32]], 2 * 6 * 16 * 32),
        ("aten::mm", [[5, 7], [7, 11]], 770),
        ("aten::addmm", [[11], [5, 7], [7, 11], [], []], 770),
        ("aten::addmm_", [[5, 11], [5, 7], [7, 11], [], []], 770),
        ("aten::_addmm_activation", [[11], [5, 7], [7, 11], [], [], []], 770),
        ("aten::bmm", [[2, 3, 4], [2, 4, 5]], 240),
        ("aten::baddbmm", [[2, 3, 5], [2, 3, 4], [2, 4, 5], [], []], 240),
        ("aten::addbmm", [[3, 5], [2, 3, 4], [2, 4, 5], [], []], 240),
        ("aten::mv", [[3, 4], [4]], 24),
        ("aten::addmv_", [[3], [3, 4], [4], [], []], 24),
        ("aten::dot", [[7], [7]], 14),
        ("aten::_grouped_mm", [[10, 4], [3, 4, 6], [3]], 2 * 10 * 4 * 6),
        ("aten::_grouped_mm", [[3, 5, 4], [3, 4, 6], [3]], 2 * 3 * 5 * 4 * 6),
        # 5 steps of 2 sequences, hidden 8 from 6: four gates of (6 + 8) × 8 weights
        ("aten::lstm", [[5, 2, 6], [[1, 2, 8], [1, 2, 8]], [[32, 6], [32, 8], [32], [32]], [], []],
         2 * 10 * (32 * 6 + 32 * 8)),
        ("aten::gru", [[5, 2, 6], [1, 2, 8], [[24, 6], [24, 8], [24], [24]], []], 2 * 10 * (24 * 6 + 24 * 8)),
    ],
)  # fmt: skip
def test_products(name: str, shapes: list[Any], expected: int) -> None:
    assert flops(name, shapes) == expected


def attention(queries: int, keys: int, causal: str, heads: int = 4, kv: int = 4, last: int = 8) -> int | None:
    shapes = [[2, heads, queries, 16], [2, kv, keys, 16], [2, kv, keys, last], [], [], [], [], []]
    return flops("aten::scaled_dot_product_attention", shapes, ["", "", "", "", "0.", causal, "", "False"])


def test_attention() -> None:
    """q·kᵀ over 16, then with v over 8: 2 × (16 + 8) a pair, 8 heads in all; fewer heads of k and v change nothing."""
    assert attention(6, 10, "False") == 8 * 60 * 48
    assert attention(6, 10, "False", kv=2) == 8 * 60 * 48
    assert attention(6, 6, "True") == 8 * 21 * 48
    assert attention(1, 10, "True") == 8 * 1 * 48  # aligned at the upper left: the only query sees one key
    assert attention(6, 6, "") is None  # whether it is causal was not noted
    inner = "aten::_scaled_dot_product_flash_attention"
    shapes = [[1, 2, 3, 4], [1, 2, 5, 4], [1, 2, 5, 4], [], [], [], []]
    assert flops(inner, shapes, ["", "", "", "0.", "False", "", ""]) == 2 * 15 * 16


def test_causal_pairs_of_other_corners() -> None:
    """flash-attn aligns the diagonal at the lower right: counted pair by pair."""
    for queries, keys in itertools.product(range(1, 7), range(1, 7)):
        pairs = sum(k - (keys - queries) <= q for q in range(queries) for k in range(keys))
        shapes = [[1, queries, 3, 8], [1, keys, 3, 8], [1, keys, 3, 8], [], [], []]
        values = ["", "", "", "0.", "0.5", "True"]
        assert flops("flash_attn::_flash_attn_forward", shapes, values) == 3 * pairs * 32, (queries, keys)
        upper = sum(k <= q for q in range(queries) for k in range(keys))
        assert attention(queries, keys, "True") == 8 * upper * 48, (queries, keys)
    packed = [[9, 3, 8], [9, 3, 8], [9, 3, 8], [3], [3], [], [], [], []]
    assert flops("aten::_flash_attention_forward", packed, ["", "", "", "", "", "5", "5", "0.", "True"]) is None


def test_convolutions() -> None:
    settings = ["[2, 2]", "[1, 1]", "[1, 1]", "False", "[0, 0]", "2"]
    empty: list[Any] = [[], [], [], [], [], []]
    # 4 → 8 channels in two groups, 3 × 3, stride 2: 5 × 5 results
    shapes = [[1, 4, 9, 9], [8, 2, 3, 3], [8], *empty]
    assert flops("aten::convolution", shapes, ["", "", "", *settings]) == 2 * 8 * 25 * 2 * 9
    assert flops("aten::convolution", shapes) is None  # settings were not noted
    dilated = ["[1]", "[0]", "[3]", "False", "[0]", "1"]  # 20 − 3 × 2 = 14 results
    shapes = [[3, 4, 20], [6, 4, 3], [6], *empty]
    assert flops("aten::convolution", shapes, ["", "", "", *dilated]) == 2 * 3 * 6 * 14 * 12
    transposed = ["[2]", "[0]", "[1]", "True", "[0]", "1"]  # each of 2 × 4 × 7 values meets 6 × 3 weights
    shapes = [[2, 4, 7], [4, 6, 3], [6], *empty]
    assert flops("aten::convolution", shapes, ["", "", "", *transposed]) == 2 * 56 * 18
    cudnn = ["", "", "[1, 1]", "[2, 2]", "[1, 1]", "2"]
    shapes = [[1, 4, 9, 9], [8, 2, 3, 3], [], [], [], []]
    assert flops("aten::cudnn_convolution", shapes, cudnn) == 2 * 8 * 25 * 2 * 9


def test_dtypes_and_bytes() -> None:
    shapes = [[5, 7], [7, 11]]
    for name, short, size in (
        ("c10::BFloat16", "bf16", 2), ("c10::Half", "fp16", 2), ("float", "fp32", 4), ("double", "fp64", 8),
        ("c10::Float8_e4m3fn", "fp8", 1), ("signed char", "int8", 1),
    ):  # fmt: skip
        found = count("aten::mm", Inputs(shapes, [name, name]))
        assert found is not None
        assert (found.dtype, found.bytes) == (short, size * (35 + 77 + 55))
    assert flops("aten::mm", shapes, dtype="c10::complex<float>") is None
    assert flops("aten::mm", shapes, dtype="long int") is None


def test_what_no_rule_reads() -> None:
    assert not known("aten::matmul") and not suspect("aten::matmul")  # its inner operators count
    assert suspect("vllm::unified_attention") and suspect("bitsandbytes::gemv_4bit")
    assert not suspect("vllm::silu_and_mul") and not suspect("aten::conv2d")
    assert flops("aten::mm", [[5, 7], []]) is None  # a nested tensor has no shape
    assert flops("aten::mm", [[5, 7], [8, 9]]) is None
