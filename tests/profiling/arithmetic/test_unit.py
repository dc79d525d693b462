"""FLOPs and MFU of a unit, from slices and times made by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from handmade import TraceBuilder, ns

from awp_lint.detector.profiling import kineto
from awp_lint.detector.profiling.arithmetic.unit import profile_object, with_bounds
from awp_lint.detector.profiling.session import MarkRecords, ProcessSession, Window, WindowKind

BF16 = ["c10::BFloat16", "c10::BFloat16"]


def session(window: Window | None, *others: Window) -> ProcessSession:
    windows = (*others, window) if window is not None else others
    return ProcessSession(
        1, 0, (), "3.12", "2.11", True, (), None, "monitoring", (), {}, frozenset(), {}, windows, MarkRecords()
    )


def shapes(path: str, ticks: list[float], requests: list[float] | None = None, **more: Any) -> Window:
    end = max([*ticks, *(requests or [])]) + 1
    return Window(
        WindowKind.SHAPES, ns(0), ns(end), tuple(ns(tick) for tick in ticks), trace=path,
        requests=tuple(ns(tick) for tick in requests or []), prefill=requests is not None, **more,
    )  # fmt: skip


def product(builder: TraceBuilder, start: float, took: float, rows: int, types: list[str] | None = None) -> None:
    """A product (rows, 1000) × (1000, 1000) and its kernel of ``took`` µs: 2 × rows × 10⁶ operations."""
    dims = [[rows, 1000], [1000, 1000]]
    builder.host("cpu_op", "aten::mm", start, 4, **{"Input Dims": dims, "Input type": types or BF16})
    builder.launch(start + 1, 2, start + 5, took, "nvjet_tst_128x64")


def arithmetic(window: Window | None, kind: str = "step", *others: Window, **times: float) -> dict[str, Any]:
    known = {"unit_ms": None, "ttft_ms": None, "tpot_ms": None, **times}
    return profile_object(session(window, *others), kind, kineto.load, None, known)


def test_a_step(tmp_path: Path) -> None:
    """Two whole steps of 10⁹ operations each; 989 × 10¹² a second would do one in 1.011 µs, of a step of 20 µs and of
    10 µs in which the device works."""
    builder = TraceBuilder()
    for step in range(3):
        product(builder, 100 * step + 10, 8, 500)
        builder.launch(100 * step + 20, 2, 100 * step + 40, 2, "add_kernel")
    found = arithmetic(shapes(builder.write(tmp_path / "t.json"), [0, 100, 200]), unit_ms=0.020)
    assert found["missing"] is None and found["mfu_missing"] is None
    assert (found["of"], found["units"]) == ("step", 2)
    assert found["unit"] == {
        "flops": 1e9, "kinds": {"matrix product": 1e9}, "dtypes": {"bf16": 1e9},
        "device_ms": pytest.approx(0.010), "at_least": False,
    }  # fmt: skip
    assert found["peak"] == {"device": "H200", "devices": 1, "tflops": {"bf16": 989}, "tb_per_s": 4.8}
    assert found["mfu"]["unit"] == pytest.approx(1e9 / 989e12 / 20e-6)
    assert found["mfu"]["unit_busy"] == pytest.approx(1e9 / 989e12 / 10e-6)
    assert found["mfu"]["prefill"] is None and found["prefill"] is None


@pytest.mark.parametrize("inside", [False, True])
def test_prefill_apart_from_tokens(inside: bool, tmp_path: Path) -> None:
    """Before the loop, or within its first step: 100 rows at once, then one a token."""
    builder = TraceBuilder()
    ticks: list[float] = []
    begins: list[float] = []
    for request in range(2):
        at = 1000 * request
        begins.append(at)
        product(builder, at + 20, 50, 100)
        ticks += [at + 10 if inside else at + 100, at + 200, at + 300, at + 400]
        for step in range(4):
            if not inside or step:
                product(builder, at + 110 + 100 * step, 5, 1)
    begins.append(2000)
    window = shapes(builder.write(tmp_path / "t.json"), list(ticks), begins)
    # unprofiled: the first token after 100 (before the loop) or 200 µs, then one each 100 µs
    plain = [1000 * n + t for n in range(3) for t in (10 if inside else 100, 200, 300, 400)]
    baseline = Window(
        WindowKind.BASELINE, ns(0), ns(3000), tuple(ns(t) for t in plain), requests=(ns(0), ns(1000), ns(2000))
    )
    found = arithmetic(window, "step", baseline, unit_ms=0.15, ttft_ms=0.2, tpot_ms=0.1)
    assert found["of"] == "token"
    assert found["prefill"]["flops"] == 2e8
    assert found["unit"]["flops"] == 2e6
    assert found["mfu"]["prefill"] == pytest.approx(2e8 / 989e12 / 200e-6)
    assert found["mfu"]["prefill_busy"] == pytest.approx(2e8 / 989e12 / 50e-6)
    assert found["mfu"]["unit"] == pytest.approx(2e6 / 989e12 / 100e-6)


def test_dtypes_have_their_own_peaks(tmp_path: Path) -> None:
    """10⁹ operations in bf16 and as many in float32, which may run as TF32 (494) or not (67)."""
    builder = TraceBuilder()
    for step in range(2):
        product(builder, 100 * step + 10, 8, 500)
        product(builder, 100 * step + 30, 8, 500, ["float", "float"])
    path = builder.write(tmp_path / "t.json")
    for reduced, rate, peak in ((True, "tf32", 494e12), (False, "fp32", 67e12), (None, "fp32", 67e12)):
        found = arithmetic(shapes(path, [0, 100], fp32={"matmul": reduced, "conv": True}), unit_ms=0.1)
        assert found["unit"]["dtypes"] == {"bf16": 1e9, rate: 1e9}
        assert found["mfu"]["unit"] == pytest.approx((1e9 / 989e12 + 1e9 / peak) / 100e-6)
    builder = TraceBuilder()
    product(builder, 10, 8, 500, ["double", "double"])
    found = arithmetic(shapes(builder.write(tmp_path / "d.json"), [0, 100]), unit_ms=0.1)
    assert found["unit"]["flops"] == 1e9 and found["mfu"]["unit"] is None
    assert found["mfu_missing"] == "the table has no peak of H200 for fp64"


def test_what_cannot_be_counted_is_told(tmp_path: Path) -> None:
    builder = TraceBuilder()
    product(builder, 10, 10, 500)
    builder.host("cpu_op", "vllm::unified_attention", 30, 5)
    builder.launch(31, 2, 40, 5, "flash_fwd_kernel")
    builder.launch(50, 2, 60, 5, "triton_tem_fused_mm_3")
    found = arithmetic(shapes(builder.write(tmp_path / "t.json"), [0, 100]), unit_ms=0.1)
    assert found["unit"]["at_least"] is True
    assert found["not_counted"] == [{"name": "vllm::unified_attention", "calls": 1.0}]
    graphs = TraceBuilder()
    graphs.graph(10, 3, [(20, 5), (26, 5)])
    found = arithmetic(shapes(graphs.write(tmp_path / "g.json"), [0, 100]), unit_ms=0.1)
    assert found["unit"] is None and "CUDA graphs" in found["missing"]


def test_why_there_is_nothing(tmp_path: Path) -> None:
    assert "no step or request" in arithmetic(None, "run")["missing"]
    assert "run ended before it" in arithmetic(None)["missing"]
    damaged = tmp_path / "t.json"
    damaged.write_text("{")
    assert "could not be read" in arithmetic(shapes(str(damaged), [0, 100]))["missing"]
    host = TraceBuilder()
    dims = {"Input Dims": [[5, 7], [7, 11]], "Input type": ["float", "float"]}
    host.host("cpu_op", "aten::mm", 10, 4, **dims)
    found = arithmetic(shapes(host.write(tmp_path / "h.json"), [0, 100]), unit_ms=0.1)
    assert found["unit"]["flops"] == 770 and "no accelerator" in found["mfu_missing"]
    assert found["mfu"] == dict.fromkeys(("unit", "unit_busy", "prefill", "prefill_busy"))


def test_kernels_on_the_roofline(tmp_path: Path) -> None:
    """(500, 1000) × (1000, 1000) in bf16: 10⁹ operations on 4 MB; (1, 1000): 2 × 10⁶ on 2 MB. The ridge is at 206."""
    builder = TraceBuilder()
    for step in range(2):
        product(builder, 100 * step + 10, 8, 500)
        product(builder, 100 * step + 30, 6, 1)
        dims = [[1, 8, 64, 64]] * 3 + [[], [], []]
        values = ["", "", "", "", "0.", "False"]
        builder.host("cpu_op", "aten::scaled_dot_product_attention", 100 * step + 50, 20,
                     **{"Input Dims": dims, "Input type": BF16 * 3, "Concrete Inputs": values})  # fmt: skip
        for at in (52, 60):  # two products: which of them has how much is not told
            builder.launch(100 * step + at, 2, 100 * step + at + 5, 4, "sgemm_attention")
    path = builder.write(tmp_path / "t.json")
    found = arithmetic(shapes(path, [0, 100]), unit_ms=0.1)
    (row,) = found["kernels"]
    assert (row["name"], row["runs"], row["dtype"]) == ("nvjet_tst_128x64", 4, "bf16")
    assert row["intensity"] == pytest.approx(2 * (1e9 + 2e6) / (2 * 2 * (2e6 + 1e6 + 2000)))
    assert row["tflops"] == pytest.approx(2 * (1e9 + 2e6) / 28e-6 / 1e12)
    table = [
        {"name": "nvjet_tst_128x64", "bound": "unknown", "why": ""},
        {"name": "nvjet_tst_128x64<1>", "bound": "unknown", "why": ""},
        {"name": "tiny", "bound": "latency", "why": "x"},
    ]
    shown = with_bounds({"kernels": table}, found)
    assert shown is not None
    assert [row["bound"] for row in shown["kernels"]] == ["memory", "unknown", "latency"]
    assert shown["kernels"][0]["why"] == "167 FLOP/byte at most by its shapes, ridge point 206 (bf16); 72 TFLOP/s"
    assert with_bounds(None, found) is None
    assert with_bounds({"kernels": table}, {**found, "peak": None}) == {"kernels": table}
