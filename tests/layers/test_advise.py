from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.layers.advise import advise, lines
from awp_lint.detector.layers.grid import guesses
from awp_lint.detector.layers.matrix import LAYERS, OPTIONS
from awp_lint.detector.layers.signals import signals


def kernel(kind: str, ms: float, mean_us: float = 20.0, bound: str = "memory") -> dict[str, Any]:
    return {
        "name": kind,
        "kind": kind,
        "calls": 1.0,
        "ms": ms,
        "mean_us": mean_us,
        "share": 0.1,
        "bound": bound,
        "why": "",
    }


def profile(
    unit_ms: float, busy_ms: float, causes: dict[str, float], kernels: list[dict[str, Any]], **device: Any
) -> dict[str, Any]:
    return {
        "unit": "step", "unit_ms": unit_ms, "gpu_busy_ms": busy_ms, "gap_ratio": 1 - busy_ms / unit_ms,
        "memcpy_share": 0.001, "kernels": 900.0, "causes": causes, "ranks": 1, "ttft_ms": None, "tpot_ms": unit_ms,
        "picture": {"kernels": kernels, "launches": {"graph_launches": 0.0}, "device": {"name": "NVIDIA H200"},
                    "communication": {"ms": 0.0, "exposed_ms": 0.0}},
        "telemetry": {"devices": [{"name": "NVIDIA H200", "throttled": {}, "gpu_util_pct": 50.0,
                                   "memory_used_bytes": 20e9, "memory_total_bytes": 150e9, **device}]},
    }  # fmt: skip


LAUNCH_BOUND = profile(
    20.0, 2.5, {"launch": 0.9, "sync": 0.1},
    [kernel("matrix × vector", 1.0), kernel("elementwise", 1.2, 2.0, "latency"),
     kernel("softmax", 0.3, 3.0, "latency")],
    sm_active_pct=5.0, tensor_active_pct=0.2, dram_active_pct=2.5,
)  # fmt: skip
MEMORY_BOUND = profile(
    10.0, 9.8, {"launch": 1.0},
    [kernel("matrix product", 6.0, bound="unknown"), kernel("attention", 3.0, bound="unknown"),
     kernel("elementwise", 0.8)],
    sm_active_pct=90.0, tensor_active_pct=10.0, dram_active_pct=85.0, memory_used_bytes=140e9,
)  # fmt: skip


def found(rule: str, verdict: str = "confirmed") -> dict[str, Any]:
    return {"rule": rule, "suppressed": None, "evidence": {"verdict": verdict}}


def by_option(advice: dict[str, Any]) -> dict[str, str]:
    return {row["option"].split(" (")[0].split(",")[0]: row["applies"] for row in advice["options"]}


def test_every_layer_has_an_option() -> None:
    assert {option.layer for option in OPTIONS} == set(LAYERS)
    assert all(0 <= o.priority <= 2 and 1 <= o.effort <= 4 and o.prior and o.measure for o in OPTIONS)


def test_a_launch_bound_decode_gets_graphs_and_no_quantisation() -> None:
    told = by_option(advise(LAUNCH_BOUND, []))
    assert told["CUDA graphs"] == "yes" and told["continuous batching"] == "yes"
    assert told["weights in 8 or 4 bits"] == "no"
    assert told["speculative decoding"] == "unknown"
    assert told["several copies on the device"] == "yes"
    row = next(r for r in advise(LAUNCH_BOUND, [])["options"] if r["option"] == "CUDA graphs")
    assert row["bound"] == "at most 79 % of a step"  # 0.875 of it idle, 0.9 of that behind launches


def test_a_memory_bound_decode_gets_quantisation_and_no_graphs() -> None:
    told = by_option(advise(MEMORY_BOUND, []))
    assert told["weights in 8 or 4 bits"] == "yes" and told["KV cache in 8 bits"] == "yes"
    assert told["paged KV cache"] == "yes" and told["speculative decoding"] == "yes"
    assert told["CUDA graphs"] == "no" and told["several copies on the device"] == "no"
    rows = {r["option"]: r for r in advise(MEMORY_BOUND, [])["options"]}
    assert rows["weights in 8 or 4 bits (FP8, W8A8, W4A16)"]["bound"] == "about 30 % of a step at half the bytes"


def test_findings_of_the_code_count_unless_the_run_speaks_against_them() -> None:
    assert by_option(advise(MEMORY_BOUND, []))["prefix caching"] == "unknown"
    assert by_option(advise(MEMORY_BOUND, [found("AWP806", "static_only")]))["prefix caching"] == "yes"
    assert by_option(advise(MEMORY_BOUND, [found("AWP806", "refuted")]))["prefix caching"] == "unknown"
    assert by_option(advise(MEMORY_BOUND, [found("AWP401")]))["CUDA graphs"] == "no"


def test_without_a_run_only_the_code_speaks() -> None:
    told = advise(None, [{"rule": "AWP804", "suppressed": None, "evidence": None}])
    assert by_option(told)["CUDA graphs"] == "yes"
    assert {row["applies"] for row in told["options"]} == {"yes", "unknown"} and told["combinations"] == []
    cpu = {**LAUNCH_BOUND, "gpu_busy_ms": None, "gap_ratio": None}
    assert signals(cpu, []) is None and advise(cpu, [])["combinations"] == []


def test_a_throttled_device_comes_first() -> None:
    slow = profile(10.0, 9.0, {"launch": 1.0}, [kernel("matrix product", 9.0)], throttled={"thermal (hardware)": 0.4})
    first = advise(slow, [])["options"][0]
    assert first["layer"] == "system" and first["applies"] == "yes"


def test_guesses_follow_the_model() -> None:
    s = signals(MEMORY_BOUND, [])
    assert s is not None
    table = {(g.batch, g.weights, g.runtime, g.devices): g for g in guesses(s, 206.0)}
    today = table[1, "as they are", "as it is", 1]
    assert today.step_ms == pytest.approx(9.8) and today.throughput == pytest.approx(10.0 / 9.8)
    larger = table[16, "as they are", "as it is", 1]
    assert larger.step_ms == pytest.approx(6.0 + 16 * 3.0 + 16 * 0.8)  # products read their weights once
    assert guesses(s, None) == []


def test_text_labels_every_guess() -> None:
    text = "\n".join(lines(advise(LAUNCH_BOUND, [found("AWP401")]), "step"))
    assert "All of it is a guess until it is measured." in text.replace("\n", " ")
    assert "guesses by a roofline model" in text and "none measured" in text
    assert "Does not apply" not in text
    assert "Does not apply" in "\n".join(lines(advise(LAUNCH_BOUND, []), "step", every=True))


def test_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    Path("serve.sh").write_text("vllm serve model --enforce-eager\n")
    assert main(["--isolated", "--no-cache", "--advise", "."]) == 1
    out = capsys.readouterr().out
    assert "AWP804 found in the code" in out and "nothing was measured on a device" in out
