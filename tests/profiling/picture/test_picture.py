from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from handmade import PID, THREAD, SessionBuilder, TraceBuilder, finding
from simulated import Statement, profile_run

from awp_lint.detector.finding import Event
from awp_lint.detector.profiling import kineto
from awp_lint.detector.profiling.picture import lanes
from awp_lint.detector.profiling.picture.build import picture
from awp_lint.detector.profiling.picture.kinds import bound_of, kind_of, label, short_name
from awp_lint.detector.profiling.picture.work import own_time
from awp_lint.detector.profiling.run import analyse
from awp_lint.detector.profiling.session import Session, WindowKind

ELEMENTWISE = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int, float)"
NOCAST = "void at::native::elementwise_kernel<128, 4, at::native::gpu_kernel_impl_nocast<at::native::"


def slice_of_two_units(path: Path) -> Session:
    """Two units of 1,000 µs: three kernels, a pinned copy of which half is exposed, and a wait each."""
    trace = TraceBuilder()
    session = SessionBuilder([finding(3, "AWP101", Event.WAIT, "/app/x.py")])
    for base in (0.0, 1000.0):
        trace.host("cpu_op", "aten::linear", base + 5, 100)
        trace.host("cpu_op", "aten::addmm", base + 15, 60)
        trace.launch(base + 10, 5, base + 30, 40, name="ampere_sgemm_128x64_tn")
        trace.launch(base + 120, 5, base + 130, 4, name=ELEMENTWISE)
        trace.launch(base + 140, 5, base + 150, 20, name=ELEMENTWISE)
        trace.copy(base + 155, 5, base + 160, 20, 4096, "HtoD (Pinned -> Device)", stream=9)
        trace.sync(base + 200, 300)
        session.ran("f3", base + 195, base + 505)
    session.window(WindowKind.TRACE, 0, 2000, [0, 1000, 2000], trace.write(path))
    session.window(WindowKind.BASELINE, 3000, 5000, [3000, 3900, 4800])
    return session.session()


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("ampere_bf16_s16816gemm_bf16_128x64_ldg8_f2f_stages_64x3_tn", "matrix product"),
        ("nvjet_tst_64x32_64x16_2x1_v_bz_coopB_TNN", "matrix product"),
        ("void gemv2T_kernel_val<int, int, __nv_bfloat16>(...)", "matrix × vector"),
        ("void pytorch_flash::flash_fwd_kernel<Flash_fwd_kernel_traits<128, 64>>(params)", "attention"),
        ("fmha_cutlassF_bf16_aligned_64x64_rf_sm80(PyTorchMemEffAttention::AttentionKernel)", "attention"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 8, false>(float*)", "softmax"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float>>(x)", "reduction"),
        ("triton_poi_fused_add_mul_0", "elementwise"),
        ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)", "communication"),
        ("rms_norm_kernel", "normalisation"),
        ("my_kernel", "other"),
    ],
)
def test_kinds_of_kernels(name: str, kind: str) -> None:
    assert kind_of(name) == kind


def test_bounds_say_their_grounds() -> None:
    assert bound_of("elementwise", 3.0).word == "latency"
    assert bound_of("elementwise", 80.0).word == "memory"
    assert bound_of("communication", 2.0).word == "communication"
    assert bound_of("matrix product", 300.0).word == "unknown"
    assert "3.0 µs" in bound_of("elementwise", 3.0).why


def test_short_names() -> None:
    assert short_name(ELEMENTWISE) == "vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>"
    assert short_name("void (anonymous namespace)::f<int (*)(int)>(float*)") == "f<int (*)(int)>"
    assert (
        short_name("std::enable_if<!(false), void>::type internal::gemvx::kernel<int>(P)")
        == "internal::gemvx::kernel<int>"
    )
    assert len(short_name("k" * 500)) == 160


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (ELEMENTWISE, "CUDAFunctor_add (vectorized_elementwise)"),
        (f"{NOCAST}BinaryFunctor<float, float, float, at::native::binary_internal::MulFunctor<float>>>(x)>(int)",
         "MulFunctor (elementwise)"),
        (f"{NOCAST}direct_copy_kernel_cuda(at::TensorIteratorBase&)::{{lambda()#3}}>(x)>(int)",
         "direct_copy_kernel_cuda (elementwise)"),
        ("void at::native::reduce_kernel<512, 1, at::native::ReduceOp<float, at::native::ArgMaxOps<float>, 4>>(R)",
         "ArgMaxOps (reduce)"),
        ("void std::enable_if<true, void>::type internal::gemvx::kernel<int, float>(P)", "gemvx::kernel"),
        ("void at_cuda_detail::cub::DeviceRadixSortOnesweepKernel<at_cuda_detail::cub::policy_hub<float>>(x)",
         "DeviceRadixSortOnesweepKernel"),
        ("nvjet_sm90_tst_128x8_64x12_4x1_v_bz_TNT", "nvjet_sm90_tst_128x8_64x12_4x1_v_bz_TNT"),
        ("void softmax_warp_forward<float, float, float, 8, false, false>(f)",
         "softmax_warp_forward<float, float, float, 8, false, false>"),
        ("void f<" + "int, " * 40 + "int>(x)", "f<…>"),
    ],
)  # fmt: skip
def test_labels_say_what_a_kernel_computes(name: str, words: str) -> None:
    assert label(name) == words


def test_tables_a_unit(tmp_path: Path) -> None:
    session = slice_of_two_units(tmp_path / "t.json")
    found = picture(session.processes[0], "step", kineto.load, [])
    assert found["units"] == 2
    rows = {row["name"]: row for row in found["kernels"]}
    gemm = rows["ampere_sgemm_128x64_tn"]
    assert (gemm["calls"], gemm["ms"], gemm["mean_us"], gemm["share"]) == (1.0, 0.04, 40.0, 0.625)
    small = rows["vectorized_elementwise_kernel<4, CUDAFunctor_add<float>>"]
    assert (small["calls"], small["ms"], small["mean_us"], small["bound"]) == (2.0, 0.024, 12.0, "memory")
    assert found["operators"] == [
        {"name": "aten::addmm", "calls": 1.0, "ms": 0.06},
        {"name": "aten::linear", "calls": 1.0, "ms": 0.04},
    ]
    (copy,) = found["copies"]
    assert (copy["direction"], copy["pageable"], copy["count"], copy["bytes"]) == ("host to device", False, 1.0, 4096)
    assert (copy["ms"], copy["exposed_ms"]) == (0.02, 0.01)  # 160…180, of which 150…170 is covered
    launches = found["launches"]
    assert (launches["launches"], launches["kernels"], launches["graph_launches"]) == (4.0, 3.0, 0.0)
    assert launches["tiny_share"] == pytest.approx(1 / 3, abs=1e-3)
    assert launches["latency_us"]["p50"] == 10.0  # 20, 10, 10 and, on another stream, 5
    assert sum(launches["histogram"]["kernels"]) == 3.0
    assert sum(launches["histogram"]["ms"]) == pytest.approx(0.064, rel=1e-3)
    assert found["device"] == {"name": "NVIDIA H200", "sms": 132, "memory_bytes": None}
    assert found["unit_times"]["p50"] == 0.9 and found["unit_times"]["units"] == 2


def test_lanes_of_whole_units(tmp_path: Path) -> None:
    session = slice_of_two_units(tmp_path / "t.json")
    marked = finding(3, "AWP101", Event.WAIT, "/app/x.py")
    shown = picture(session.processes[0], "step", kineto.load, [marked])["timeline"]
    assert shown["span_us"] == 2000.0 and shown["ticks"] == [0.0, 1000.0] and shown["drawn"] == shown["events"]
    by = {(lane["label"], lane["row"]): lane for lane in shown["lanes"]}
    operators = by[f"thread {THREAD}", "operators"]
    assert [shown["names"][n] for n in operators["name"]] == ["aten::linear", "aten::linear"]  # outermost alone
    assert operators["start"] == [5.0, 1005.0] and operators["took"] == [100.0, 100.0]
    calls = by[f"thread {THREAD}", "CUDA calls"]
    assert [shown["names"][n] for n in calls["kind"]][:5] == ["launch", "launch", "launch", "launch", "wait"]
    assert len(by["stream 7", "device"]["start"]) == 6 and len(by["stream 9", "device"]["start"]) == 2
    marks = by["findings", "marks"]
    assert marks["start"] == [195.0, 1195.0] and shown["names"][marks["kind"][0]] == "f3"
    assert shown["names"][marks["name"][0]] == "AWP101 x.py:3"
    assert shown["strip"]["what"] == "device" and len(shown["strip"]["busy"]) == lanes.STRIP


def test_marked_statements_inside_others_have_their_own_lane(tmp_path: Path) -> None:
    findings = [finding(number, f"AWP10{number}", Event.WAIT, "/app/x.py") for number in (1, 2, 3)]
    session = SessionBuilder(findings)
    for name, start, end in (("f1", 0, 900), ("f2", 100, 300), ("f3", 150, 200), ("f3", 950, 990)):
        session.ran(name, start, end, PID)
    trace = TraceBuilder()
    trace.host("cpu_op", "aten::add", 10, 20, PID)
    session.window(WindowKind.TRACE, 0, 1000, [0, 1000], trace.write(tmp_path / "t.json"))
    shown = picture(session.session().processes[0], "step", kineto.load, findings)["timeline"]
    found = [(lane["label"], [shown["names"][n] for n in lane["kind"]]) for lane in shown["lanes"]]
    assert found == [
        ("findings", ["f1", "f3"]), ("… inside them", ["f2"]), ("…", ["f3"]), ("main thread", ["op"]),
    ]  # fmt: skip


def test_crowded_lanes_are_thinned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lanes, "MAX_EVENTS", 1000)
    trace = TraceBuilder()
    for number in range(5000):
        trace.launch(2.0 * number, 0.5, 2.0 * number + 1, 1.5 if number % 500 == 0 else 0.5, name=f"k{number % 3}")
    session = SessionBuilder([])
    session.window(WindowKind.TRACE, 0, 10_000, [0, 10_000], trace.write(tmp_path / "t.json"))
    shown = picture(session.session().processes[0], "step", kineto.load, [])["timeline"]
    assert shown["events"] == 14_989 and shown["drawn"] <= 1100
    device = next(lane for lane in shown["lanes"] if lane["group"] == "device")
    assert sum(device["count"]) == 5000
    starts = np.array(device["start"])
    assert (np.diff(starts) >= 0).all()
    assert ((starts + np.array(device["took"])) <= 10_000.0).all()


def test_own_time_leaves_nested_events_out(tmp_path: Path) -> None:
    trace = TraceBuilder()
    for name, start, took in (("a", 0, 100), ("b", 10, 50), ("c", 20, 10), ("d", 70, 30), ("e", 120, 5)):
        trace.host("cpu_op", name, start, took)
    read = kineto.load(trace.write(tmp_path / "t.json"))
    own = own_time(read, np.arange(5))
    assert dict(zip("abcde", own.tolist(), strict=True)) == {"a": 20000, "b": 40000, "c": 10000, "d": 30000, "e": 5000}


def test_profile_holds_the_picture(tmp_path: Path) -> None:
    marked = finding(5, "AWP101", Event.WAIT, "/app/x.py")
    steps = [Statement(host=200, kernels=(30.0,) * 20, between=9), Statement(waits=True, finding="f5", host=20)]
    session = profile_run(steps, [marked], tmp_path)
    profile = analyse(session, [marked]).profile
    found = profile["picture"]
    assert found["launches"]["kernels"] == 20.0
    assert sum(row["ms"] for row in found["kernels"]) == pytest.approx(profile["gpu_busy_ms"], rel=0.01)
    groups = [lane["group"] for lane in found["timeline"]["lanes"]]
    assert groups == ["marks", "host", "host", "device", "idle"]
    assert profile["windows"][0]["start_s"] == 0.0


def test_a_slice_that_cannot_be_read_leaves_the_rest(tmp_path: Path) -> None:
    session = slice_of_two_units(tmp_path / "t.json")
    (tmp_path / "t.json").write_text("no trace")
    found = picture(session.processes[0], "step", kineto.load, [])
    assert found["timeline"] is None and found["kernels"] == [] and found["launches"] is None
    assert found["unit_times"]["mean"] == 0.9
