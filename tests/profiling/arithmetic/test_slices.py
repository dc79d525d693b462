"""Slices with shapes of a real torch, against torch's own counter and against figures worked out by hand."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.profiling import kineto
from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.tracer import Tracer, reduced_fp32
from awp_lint.detector.profiling.arithmetic.slices import Operator, operators, work_of
from awp_lint.detector.profiling.timeline import link

torch: Any = pytest.importorskip("torch")


def counted(work: Callable[[], object], folder: Path) -> list[Operator]:
    """What the agent's own slice shows of ``work``."""
    record = Record(str(folder))
    record.born()
    tracer = Tracer(record)
    tracer.start(shapes=True)
    work()
    tracer.stop()
    path = str(folder / "slice.json")
    tracer.export(path)
    return operators(path)


def total(ops: list[Operator]) -> int:
    assert all(op.count is not None for op in ops), ops
    return sum(op.count.flops for op in ops if op.count is not None)


def modules() -> dict[str, tuple[Callable[[], object], int]]:
    """Something to run, and its FLOPs by hand."""
    nn, functional = torch.nn, torch.nn.functional
    linear, conv = nn.Linear(16, 32), nn.Conv2d(4, 8, 3, stride=2, padding=1, groups=2)
    up, depth = nn.ConvTranspose1d(4, 6, 3, stride=2), nn.Conv1d(8, 8, 5, padding="same", groups=8)
    lstm = nn.LSTM(6, 8)
    layer = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).eval()
    query, key = torch.randn(2, 4, 6, 16), torch.randn(2, 2, 10, 16)
    left, right = torch.randn(1, 2, 3, 4), torch.randn(1, 2, 5, 4)
    # an encoder layer over 10 positions: three projections, 2 × 2 heads of 5 × 5 pairs with 8 features twice, one back,
    # and the two of the feed-forward part
    encoder = 2 * 10 * 16 * 48 + 2 * 4 * 25 * 16 + 2 * 10 * 16 * 16 + 2 * 2 * 10 * 16 * 32
    return {
        "linear": (lambda: linear(torch.randn(2, 3, 16)), 2 * 6 * 16 * 32),
        "matmul": (lambda: torch.randn(2, 3, 4) @ torch.randn(2, 4, 5), 240),
        "matrix and vector": (lambda: torch.randn(3, 4) @ torch.randn(4), 24),
        "einsum": (lambda: torch.einsum("bhqd,bhkd->bhqk", left, right), 2 * 2 * 3 * 5 * 4),
        "attention": (
            lambda: functional.scaled_dot_product_attention(query, key, key, enable_gqa=True),
            2 * 8 * 60 * 32,
        ),
        "causal": (
            lambda: functional.scaled_dot_product_attention(query, query, query, is_causal=True),
            2 * 8 * 21 * 32,
        ),
        "convolution": (lambda: conv(torch.randn(1, 4, 9, 9)), 2 * 8 * 25 * 2 * 9),
        "transposed": (lambda: up(torch.randn(2, 4, 7)), 2 * 56 * 18),
        "depthwise": (lambda: depth(torch.randn(2, 8, 20)), 2 * 2 * 8 * 20 * 5),
        "lstm": (lambda: lstm(torch.randn(5, 2, 6)), 2 * 10 * (32 * 6 + 32 * 8)),
        "encoder layer": (lambda: layer(torch.randn(2, 5, 16)), encoder),
    }  # fmt: skip


@pytest.mark.parametrize("name", modules())
def test_by_hand(name: str, tmp_path: Path) -> None:
    work, expected = modules()[name]
    with torch.inference_mode():
        work()
        assert total(counted(work, tmp_path)) == expected


def test_torch_counts_the_same(tmp_path: Path) -> None:
    """Products and convolutions through torch's own counter, which is another implementation."""
    from torch.utils.flop_counter import FlopCounterMode

    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.Conv2d(8, 4, 3, stride=2), nn.Flatten(),
                          nn.Linear(4 * 7 * 7, 32), nn.GELU(), nn.Linear(32, 5))  # fmt: skip
    batch = torch.randn(3, 3, 16, 16)
    with torch.no_grad():
        counter = FlopCounterMode(display=False)
        with counter:
            model(batch)
        ops = counted(lambda: model(batch), tmp_path)
    assert total(ops) == counter.get_total_flops()
    assert {op.count.kind for op in ops if op.count} == {"convolution", "matrix product"}


def test_the_precision_of_float32_is_asked_quietly(recwarn: pytest.WarningsRecorder) -> None:
    assert reduced_fp32(torch)["matmul"] is False
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision("high")
    try:
        assert reduced_fp32(torch)["matmul"] is True
    finally:
        torch.set_float32_matmul_precision(before)
    assert not [w for w in recwarn if "precision" in str(w.message).lower()]
    assert reduced_fp32(object()) == {"matmul": None, "conv": None}


def event(name: str, start: float, took: float, dims: list[Any], thread: int = 1, **more: Any) -> dict[str, Any]:
    args = {"Input Dims": dims, "Input type": ["float"] * len(dims), "Concrete Inputs": [""] * len(dims)}
    return {"ph": "X", "cat": "cpu_op", "name": name, "pid": 1, "tid": thread, "ts": start, "dur": took,
            "args": args, **more}  # fmt: skip


def test_the_outermost_operator_counts_and_what_tells_nothing_gives_way(tmp_path: Path) -> None:
    events = [
        event("aten::linear", 0, 10, [[2, 3], [4, 3]]),
        event("aten::addmm", 1, 8, [[4], [2, 3], [3, 4]]),  # inside: not again
        event("aten::linear", 20, 10, [[], [4, 3]]),  # a nested tensor: what it holds counts
        event("aten::mm", 21, 2, [[2, 3], [3, 4]]),
        event("own::attention", 40, 5, [[2, 3]]),
        event("own::attention", 50, 5, [[2, 3]]),
        event("aten::mm", 51, 1, [[2, 3], [3, 4]]),
        event("aten::mm", 2, 1, [[5, 3], [3, 4]], thread=2),  # another thread's
        event("aten::add", 60, 1, [[5, 3], [5, 3]]),
    ]
    path = tmp_path / "slice.json"
    path.write_text(json.dumps({"baseTimeNanoseconds": 1000, "traceEvents": events}))
    found = [(op.thread, op.name, op.start, op.count and op.count.flops) for op in operators(str(path))]
    assert sorted(found) == sorted(
        [
            (1, "aten::linear", 1000, 48), (1, "aten::mm", 22_000, 48), (1, "own::attention", 41_000, None),
            (1, "aten::mm", 52_000, 48), (2, "aten::mm", 3000, 120),
        ]
    )  # fmt: skip


def test_device_work_by_its_operator(tmp_path: Path) -> None:
    from handmade import THREAD, TraceBuilder, ns

    builder = TraceBuilder()
    dims = {"Input Dims": [[2, 3], [3, 4]], "Input type": ["float", "float"]}
    builder.host("cpu_op", "aten::mm", 10, 20, **dims)
    builder.launch(12, 5, 40, 30, "sgemm")
    builder.launch(18, 5, 70, 3, "splitk_reduce")
    builder.launch(32, 5, 80, 9, "add_kernel")  # behind it
    builder.launch(15, 2, 90, 9, "add_kernel", thread=THREAD + 1)  # another thread's
    path = builder.write(tmp_path / "slice.json")
    trace = kineto.load(path)
    (op,) = operators(path)
    assert (op.start, op.thread) == (ns(10), THREAD)
    assert work_of([op], trace, link(trace)).tolist() == [0, 0, -1, -1]


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traceEvents": 3}', '{"traceEvents": ['])
def test_a_damaged_slice_is_an_error_that_is_caught(text: str, tmp_path: Path) -> None:
    path = tmp_path / "slice.json"
    path.write_text(text)
    with pytest.raises(ValueError):
        operators(str(path))
