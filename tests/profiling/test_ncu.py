from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.ncu import load, with_counters

HEAD = (
    '"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device",'
    '"CC","Section Name","Metric Name","Metric Unit","Metric Value","Rule Name","Rule Type","Rule Description"'
)


def detail(number: int, kernel: str, section: str, metric: str, unit: str, value: str) -> str:
    about = f'"{number}","77","python3.11","127.0.0.1","{kernel}","1","7","(256, 1, 1)","(512, 1, 1)","0","9.0"'
    return f'{about},"{section}","{metric}","{unit}","{value}","","",""'


def details(number: int, kernel: str, us: str, compute: str, memory: str, l2: str, occupancy: str) -> list[str]:
    light = "GPU Speed Of Light Throughput"
    return [
        detail(number, kernel, light, "DRAM Frequency", "Ghz", "3.20"),
        detail(number, kernel, light, "Memory Throughput", "%", memory),
        detail(number, kernel, light, "Duration", "us", us),
        detail(number, kernel, light, "Compute (SM) Throughput", "%", compute),
        detail(number, kernel, "Memory Workload Analysis", "Memory Throughput", "Tbyte/s", "3.1"),
        detail(number, kernel, "Memory Workload Analysis", "L2 Hit Rate", "%", l2),
        detail(number, kernel, "Occupancy", "Achieved Occupancy", "%", occupancy),
    ]


def test_the_page_details(tmp_path: Path) -> None:
    lines = ["==PROF== Connected to process 77", HEAD]
    gemv, tiny = "void gemv2T_kernel_val<int, float>(Params)", "vectorized_elementwise_kernel"
    lines += details(0, gemv, "1,000.0", "20.0", "80.0", "10.0", "40.0")
    lines += details(1, gemv, "3,000.0", "40.0", "90.0", "30.0", "60.0")
    lines += details(2, tiny, "2.5", "5.0", "9.0", "70.0", "n/a")
    lines.append("==PROF== Disconnected from process 77")
    (tmp_path / "x.csv").write_text("\n".join(lines))
    first, second = load(str(tmp_path / "x.csv"))
    assert first["name"] == "gemv2T_kernel_val<int, float>" and first["runs"] == 2
    assert first["mean_us"] == 2000.0
    assert (first["compute_pct"], first["memory_pct"]) == (35.0, 87.5)  # weighted by time, 1:3
    assert (first["l2_hit_pct"], first["occupancy_pct"], first["bound"]) == (25.0, 55.0, "memory")
    assert (second["bound"], second["occupancy_pct"], second["stall"], second["intensity"]) == (
        "latency",
        None,
        None,
        None,
    )


def test_the_page_raw_with_stalls_and_intensity(tmp_path: Path) -> None:
    metrics = {
        "gpu__time_duration.sum": ("ns", "50000"),
        "sm__throughput.avg.pct_of_peak_sustained_elapsed": ("%", "75.5"),
        "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": ("%", "30"),
        "dram__bytes_read.sum": ("Mbyte", "6"),
        "dram__bytes_write.sum": ("Mbyte", "4"),
        "sm__ops_path_tensor_src_bf16_dst_fp32.sum": ("", "2,000,000,000"),
        "smsp__sass_thread_inst_executed_op_ffma_pred_on.sum": ("inst", "500,000,000"),
        "smsp__average_warps_issue_stalled_long_scoreboard_per_issue_active.ratio": ("inst", "4.5"),
        "smsp__average_warps_issue_stalled_barrier_per_issue_active.ratio": ("inst", "1.5"),
    }
    header = ["ID", "Kernel Name", *metrics]
    rows = [header, ["", "", *(unit for unit, _ in metrics.values())], ["0", "gemm", *(v for _, v in metrics.values())]]
    (tmp_path / "x.csv").write_text("\n".join(",".join(f'"{cell}"' for cell in row) for row in rows))
    (row,) = load(str(tmp_path / "x.csv"))
    assert (row["mean_us"], row["bound"], row["stall"]) == (50.0, "compute", "long scoreboard")
    assert row["intensity"] == 300.0  # (2e9 + 2 × 0.5e9) ÷ 10e6
    assert row["tflops"] == 60.0  # 3e9 in 50 µs


def test_counters_decide_the_bound_of_the_traces_kernels() -> None:
    other = {"name": "other", "bound": "latency", "why": ""}
    kernels = [{"name": "gemm<128, 64>", "bound": "unknown", "why": "shapes"}, other]
    rows = [{"name": "gemm", "runs": 1, "bound": "compute", "compute_pct": 80.0, "memory_pct": 20.0}]
    profile = with_counters({"unit_ms": 1.0, "picture": {"kernels": kernels}}, rows, "x.csv")
    assert profile["picture"]["kernels"][0]["bound"] == "compute"
    assert profile["picture"]["kernels"][0]["why"] == "counters: arithmetic at 80 %, memory at 20 % of their peaks"
    assert profile["picture"]["kernels"][1] == kernels[1]
    assert profile["counters"] == {"source": "x.csv", "kernels": rows}


@pytest.mark.parametrize("text", ["", "no csv at all", '"ID","Process ID"\n"1","2"', HEAD])
def test_other_files_are_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.csv").write_text(text)
    with pytest.raises(UsageError, match="no export of Nsight Compute"):
        load(str(tmp_path / "x.csv"))
    with pytest.raises(UsageError, match="cannot be read"):
        load(str(tmp_path / "none.csv"))
