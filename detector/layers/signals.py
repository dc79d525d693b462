"""What a run says that decides between layers, read from the report's ``profile`` object. None is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

_WEIGHTS = ("matrix product", "matrix × vector", "convolution")
_BY_HAND = ("AWP501",)


@dataclass(frozen=True, slots=True)
class Signals:
    """Times in ms a unit, shares 0…1 of the unit unless said otherwise."""

    unit: str
    unit_ms: float
    busy_ms: float
    gap: float
    launch_idle: float  # share of the unit that the device idles behind launching
    sync_idle: float
    copies: float
    weights_ms: float  # kernels that read the weights: products
    vectors_ms: float  # of them those with vectors: batch 1
    attention_ms: float  # fused attention kernels
    softmax_ms: float
    latency_ms: float  # kernels that are too short to fill the device
    other_ms: float
    communication_ms: float
    exposed_ms: float
    kernels: float
    graph_launches: float | None
    decode: bool | None
    ttft_ms: float | None
    tpot_ms: float | None
    ranks: int
    sm_active: float | None  # percent
    tensor_active: float | None
    dram_active: float | None
    memory_used: float | None
    memory_total: float | None
    throttled: bool | None
    eight_bit: bool
    four_bit: bool
    manual_attention: bool
    rules: frozenset[str]

    @property
    def launch_bound(self) -> bool:
        """Whether launching is what the device waits for most."""
        return self.gap >= 0.2 and self.launch_idle >= 0.5 * self.gap

    @property
    def memory_bound(self) -> bool | None:
        """Whether the busy device is limited by bandwidth; by its counters, else by the kinds of its kernels."""
        if self.dram_active is not None and self.gap < 0.95:
            while_busy = self.dram_active / max(1 - self.gap, 0.05)
            if while_busy >= 50:
                return True
        if self.busy_ms and self.vectors_ms >= 0.3 * self.busy_ms:
            return True
        return None if self.dram_active is None else False


def signals(profile: Mapping[str, Any], findings: Sequence[Mapping[str, Any]]) -> Signals | None:
    """The signals; None where the run shows no device work."""
    if profile["gpu_busy_ms"] is None or not profile["unit_ms"] or profile["gap_ratio"] is None:
        return None
    picture = profile.get("picture") or {}
    rows = picture.get("kernels") or []
    devices = (profile.get("telemetry") or {}).get("devices") or []
    device: Mapping[str, Any] = max(devices, key=lambda d: d.get("gpu_util_pct") or 0.0, default={})
    communication = picture.get("communication") or {"ms": 0.0, "exposed_ms": 0.0}
    launches = picture.get("launches") or {}
    causes = profile["causes"]
    gap = profile["gap_ratio"]

    def time(*kinds: str) -> float:
        return float(sum(row["ms"] for row in rows if row["kind"] in kinds))

    names = " ".join(row["name"].lower() for row in rows)
    latency = float(sum(row["ms"] for row in rows if row["bound"] == "latency" and row["kind"] not in _WEIGHTS))
    weights, attention = time(*_WEIGHTS), time("attention")
    vectors = time("matrix × vector")
    whole = float(sum(row["ms"] for row in rows))
    ranks = profile["ranks"]
    throttled = device.get("throttled")
    confirmed = [f for f in findings if not f["evidence"] or f["evidence"]["verdict"] in ("confirmed", "static_only")]
    decode = True if profile["tpot_ms"] is not None or (whole and vectors >= 0.2 * whole) else None
    return Signals(
        unit=profile["unit"],
        unit_ms=profile["unit_ms"],
        busy_ms=profile["gpu_busy_ms"],
        gap=gap,
        launch_idle=gap * causes.get("launch", 0.0),
        sync_idle=gap * causes.get("sync", 0.0),
        copies=profile["memcpy_share"] or 0.0,
        weights_ms=weights,
        vectors_ms=vectors,
        attention_ms=attention,
        softmax_ms=time("softmax"),
        latency_ms=latency,
        other_ms=max(whole - weights - attention - latency - communication["ms"], 0.0),
        communication_ms=communication["ms"],
        exposed_ms=communication["exposed_ms"],
        kernels=profile["kernels"] or 0.0,
        graph_launches=launches.get("graph_launches"),
        decode=decode,
        ttft_ms=profile["ttft_ms"],
        tpot_ms=profile["tpot_ms"],
        ranks=len(ranks) if isinstance(ranks, list) else 1,
        sm_active=device.get("sm_active_pct"),
        tensor_active=device.get("tensor_active_pct"),
        dram_active=device.get("dram_active_pct"),
        memory_used=device.get("memory_used_bytes"),
        memory_total=device.get("memory_total_bytes"),
        throttled=None if throttled is None else any(v >= 0.1 for w, v in throttled.items() if w != "power cap"),
        eight_bit=any(word in names for word in ("e4m3", "fp8", "int8", "_i8", "s8_")),
        four_bit=any(word in names for word in ("int4", "w4a16", "marlin", "awq", "gptq", "nf4", "fp4")),
        manual_attention=any(f["rule"] in _BY_HAND for f in confirmed),
        rules=frozenset(f["rule"] for f in confirmed),
    )
