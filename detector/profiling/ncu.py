"""Counters of kernels from Nsight Compute (``ncu --csv``), pages "details" and "raw", joined to the trace's kernels.

Such counters come from kernels run one at a time, often several times over: they say what bounds a kernel, not how long
it takes in the program.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.picture.kinds import short_name

ROWS = 40
BUSY = 60.0  # percent of a peak: below it in both, neither limits the kernel
_MAX_BYTES = 400_000_000
_STALL = re.compile(
    r"^smsp__average_warps?_(?:issue_stalled|latency_issue_stalled)_(\w+?)(?:_per_issue_active)?\.ratio$"
)
_TENSOR = re.compile(r"^sm__ops_path_tensor_\w+\.sum$")
_FP32 = {"ffma": 2.0, "fadd": 1.0, "fmul": 1.0}
# name on the page "details" (section, metric) or "raw" → ours
_NAMES: dict[str, str] = {
    "Duration": "duration",
    "gpu__time_duration.sum": "duration",
    "Compute (SM) Throughput": "compute_pct",
    "sm__throughput.avg.pct_of_peak_sustained_elapsed": "compute_pct",
    "Memory Throughput": "memory_pct",
    "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed": "memory_pct",
    "DRAM Throughput": "dram_pct",
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": "dram_pct",
    "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed": "dram_pct",
    "L2 Hit Rate": "l2_hit_pct",
    "lts__t_sector_hit_rate.pct": "l2_hit_pct",
    "Achieved Occupancy": "occupancy_pct",
    "sm__warps_active.avg.pct_of_peak_sustained_active": "occupancy_pct",
    "dram__bytes.sum": "bytes",
    "dram__bytes_read.sum": "read_bytes",
    "dram__bytes_write.sum": "written_bytes",
}
_PERCENT = frozenset(("compute_pct", "memory_pct", "dram_pct", "l2_hit_pct", "occupancy_pct"))
_SCALES = {
    "ns": 1e-3, "nsecond": 1e-3, "us": 1.0, "usecond": 1.0, "µs": 1.0, "ms": 1e3, "msecond": 1e3, "s": 1e6,
    "second": 1e6, "byte": 1.0, "Kbyte": 1e3, "Mbyte": 1e6, "Gbyte": 1e9, "%": 1.0, "": 1.0,
}  # fmt: skip


@dataclass(slots=True)
class _Kernel:
    """One run of one kernel; ``duration`` in µs, bytes plain."""

    name: str
    values: dict[str, float] = field(default_factory=dict)
    stalls: dict[str, float] = field(default_factory=dict)
    flops: float = 0.0

    def take(self, name: str, unit: str, text: str) -> None:
        """Note a metric where it is one of ours."""
        value = _number(text)
        if value is None:
            return
        if stall := _STALL.match(name):
            self.stalls[stall[1].replace("_", " ")] = value
        elif _TENSOR.match(name):
            self.flops += value
        elif name.startswith("smsp__sass_thread_inst_executed_op_") and name.endswith("_pred_on.sum"):
            operation = name.removeprefix("smsp__sass_thread_inst_executed_op_").removesuffix("_pred_on.sum")
            self.flops += _FP32.get(operation, 0.0) * value
        elif (ours := _NAMES.get(name)) is not None:
            if ours in _PERCENT and unit != "%":
                return  # the memory page shows a throughput of the same name in bytes a second
            scale = _SCALES.get(unit)
            if scale is not None:
                self.values[ours] = value * scale


def load(path: str) -> list[dict[str, Any]]:
    """Kernels of an export, one row a name, longest together first. Raises :class:`UsageError`."""
    try:
        file = Path(path)
        if file.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_BYTES // 1_000_000} MB")
        text = file.read_text("utf-8-sig", errors="replace")
    except OSError as error:
        raise UsageError(f"{path}: the counters cannot be read: {error.strerror}") from None
    kernels = list(_kernels(_table(text)))
    if not kernels:
        raise UsageError(f"{path}: no export of Nsight Compute: make one with ncu --csv --page details (or raw)")
    groups: dict[str, list[_Kernel]] = {}
    for kernel in kernels:
        groups.setdefault(short_name(kernel.name), []).append(kernel)
    rows = [_row(name, group) for name, group in groups.items()]
    return sorted(rows, key=lambda row: -(row["runs"] * (row["mean_us"] or 0.0)))


def _table(text: str) -> list[list[str]]:
    """The rows of the CSV, its header first; what the program printed around it is left out."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(('"ID"', "ID,")):
            kept = [row for row in lines[number:] if not row.startswith("==")]
            return list(csv.reader(io.StringIO("\n".join(kept))))
    return []


def _kernels(table: Sequence[Sequence[str]]) -> Iterator[_Kernel]:
    if len(table) < 2 or "Kernel Name" not in table[0]:
        return
    header = list(table[0])
    name = header.index("Kernel Name")
    if "Metric Name" in header:
        columns = [header.index(word) for word in ("ID", "Metric Name", "Metric Unit", "Metric Value")]
        found: dict[str, _Kernel] = {}
        for row in table[1:]:
            if len(row) < len(header):
                continue
            number, metric, unit, value = (row[column] for column in columns)
            found.setdefault(number, _Kernel(row[name])).take(metric, unit, value)
        yield from found.values()
        return
    units, rows = table[1], table[2:]
    for row in rows:
        if len(row) < len(header):
            continue
        kernel = _Kernel(row[name])
        for column, metric in enumerate(header):
            kernel.take(metric, units[column], row[column])
        yield kernel


def _number(text: str) -> float | None:
    try:
        value = float(text.replace(",", "").replace("\u202f", "").strip())
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def _row(name: str, group: Sequence[_Kernel]) -> dict[str, Any]:
    weights = [kernel.values.get("duration", 1.0) for kernel in group]

    def mean(key: str) -> float | None:
        known = [(k.values[key], w) for k, w in zip(group, weights, strict=True) if key in k.values]
        whole = sum(weight for _, weight in known)
        return sum(value * weight for value, weight in known) / whole if known and whole else None

    compute, memory = mean("compute_pct"), mean("memory_pct") or mean("dram_pct")
    durations = [kernel.values["duration"] for kernel in group if "duration" in kernel.values]
    stalls: dict[str, float] = {}
    for kernel in group:
        for stall, value in kernel.stalls.items():
            stalls[stall] = stalls.get(stall, 0.0) + value
    moved = sum(_bytes(kernel) for kernel in group)
    flops = sum(kernel.flops for kernel in group)
    took = sum(durations)
    return {
        "name": name,
        "runs": len(group),
        "mean_us": _figure(took / len(durations)) if durations else None,
        "compute_pct": _figure(compute),
        "memory_pct": _figure(memory),
        "l2_hit_pct": _figure(mean("l2_hit_pct")),
        "occupancy_pct": _figure(mean("occupancy_pct")),
        "stall": max(stalls, key=lambda stall: stalls[stall]) if stalls else None,
        "bound": _bound(compute, memory),
        "intensity": _figure(flops / moved) if flops and moved else None,
        "tflops": _figure(flops / took / 1e6) if flops and took else None,
    }


def _bytes(kernel: _Kernel) -> float:
    values = kernel.values
    return values.get("bytes", values.get("read_bytes", 0.0) + values.get("written_bytes", 0.0))


def _bound(compute: float | None, memory: float | None) -> str:
    if compute is None or memory is None:
        return "unknown"
    if max(compute, memory) < BUSY:
        return "latency"
    return "compute" if compute > memory else "memory"


def _figure(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.4g}")


def with_counters(profile: Mapping[str, Any], rows: Sequence[Mapping[str, Any]], source: str) -> dict[str, Any]:
    """The profile with the counters, and the measured bounds in its kernel table."""
    known = {row["name"]: row for row in rows}
    bare: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        bare.setdefault(_base(row["name"]), []).append(row)
    picture = dict(profile.get("picture") or {})
    if picture.get("kernels"):
        picture["kernels"] = [_joined(kernel, known, bare) for kernel in picture["kernels"]]
    return {**profile, "picture": picture or None, "counters": {"source": source, "kernels": list(rows[:ROWS])}}


def _joined(
    kernel: Mapping[str, Any], known: Mapping[str, Mapping[str, Any]], bare: Mapping[str, Sequence[Mapping[str, Any]]]
) -> dict[str, Any]:
    """A kernel of the trace with the bound that counters show; by its name, else by one without template arguments."""
    row = known.get(kernel["name"])
    if row is None:
        same = bare.get(_base(kernel["name"]), ())
        row = same[0] if len(same) == 1 else None
    if row is None or row["bound"] == "unknown":
        return dict(kernel)
    why = f"counters: arithmetic at {row['compute_pct']:.0f} %, memory at {row['memory_pct']:.0f} % of their peaks"
    return {**kernel, "bound": row["bound"], "why": why}


def _base(name: str) -> str:
    return name.split("<", 1)[0].rsplit("::", 1)[-1].strip()
