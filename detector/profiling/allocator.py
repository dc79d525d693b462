"""``--memory``: the allocator's own account of a run, for the report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.profiling.peaks import peaks_of
from awp_lint.detector.profiling.session import ProcessSession, WindowKind


def profile_object(process: ProcessSession) -> dict[str, Any] | None:
    """The report's ``allocator``: bytes, and counts a unit over unprofiled windows; None where it was not asked for.

    ``missing`` says why there is none. ``peak_bytes`` is what tensors held at most since the program began,
    ``reserved_bytes`` what the allocator had taken from the device for it.
    """
    account = process.memory
    if account is None:
        return None
    if "missing" in account:
        return {"missing": account["missing"]}
    units = allocations = segments = 0
    for window in process.windows:
        if window.kind is WindowKind.BASELINE and window.memory and window.memory[1] and len(window.ticks) > 1:
            before, after = window.memory
            units += len(window.ticks)
            allocations += after["allocations"] - before["allocations"]
            segments += after["segments"] - before["segments"]
    return {
        "missing": None,
        "peak_bytes": account["allocated_peak"],
        "reserved_bytes": account["reserved_peak"],
        "weights_bytes": account.get("weights"),
        "allocations": allocations / units if units else None,
        "device_allocations": segments / units if units else None,
        "retries": account["retries"],
        "out_of_memory": account["ooms"],
    }


def mbu_of_weights(
    allocator: Mapping[str, Any] | None, step_ms: float | None, telemetry: Mapping[str, Any] | None
) -> float | None:
    """Bytes of the weights ÷ time of a step ÷ the device's bandwidth: a lower bound of the MBU of a decode, which reads
    the KV cache too. None where the device's peaks, the weights or the step are not known."""
    devices: Sequence[Mapping[str, Any]] = (telemetry or {}).get("devices") or []
    peaks = peaks_of(str(devices[0].get("name", ""))) if len(devices) == 1 else None
    weights = (allocator or {}).get("weights_bytes")
    if peaks is None or not weights or not step_ms:
        return None
    return float(weights) / (step_ms / 1e3) / (peaks.tb_per_s * 1e12)
