"""The arithmetic of a unit and of a prefill, and what share of the device's peak it takes: the report's ``arithmetic``.

FLOPs come from the slice with shapes, times from the windows without profiler; the device's own time from that slice,
since describing inputs holds the host up and not the device.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.arithmetic import kernels, slices
from awp_lint.detector.profiling.arithmetic.operators import CONVOLUTION, RECURRENT
from awp_lint.detector.profiling.peaks import Peaks, peaks_of
from awp_lint.detector.profiling.picture.kinds import kind_of
from awp_lint.detector.profiling.session import ProcessSession, Window, WindowKind
from awp_lint.detector.profiling.timeline import Bools, Busy, Call, Ints, Trace, link

_COUNTED = ("matrix product", "matrix × vector", "attention", "convolution")  # kinds of kernels
_ROOM = 0.02  # of such kernels' time may lie in no operator whose arithmetic is known
_MOST = 8  # names that are told

Stretch = tuple[int, int]  # [begin, end) in ns


@dataclass(slots=True)
class _Part:
    """What was seen in some stretches of the slice, summed."""

    stretches: int = 0
    flops: Counter[str] = field(default_factory=Counter)  # by kind of operator
    rates: Counter[str] = field(default_factory=Counter)  # FLOPs by the peak that they count against
    unknown: Counter[str] = field(default_factory=Counter)  # executions of operators that tell too little
    device_ns: int = 0
    covered_ns: int = 0  # of kernels that compute, those launched by counted operators ...
    computing_ns: int = 0  # ... and all
    graphs: int = 0

    @property
    def at_least(self) -> bool:
        """Whether there is arithmetic that was not counted."""
        return bool(self.unknown) or self.computing_ns - self.covered_ns > _ROOM * self.computing_ns

    def as_dict(self) -> dict[str, Any] | None:
        """A stretch's share, ready for JSON; None where nothing was counted."""
        if not self.stretches or not self.flops:
            return None
        return {
            "flops": sum(self.flops.values()) / self.stretches,
            "kinds": {kind: flops / self.stretches for kind, flops in self.flops.most_common()},
            "dtypes": {dtype: flops / self.stretches for dtype, flops in self.rates.most_common()},
            "device_ms": self.device_ns / 1e6 / self.stretches if self.device_ns else None,
            "at_least": self.at_least,
        }


def profile_object(
    process: ProcessSession, kind: str, load: Callable[[str], Trace], telemetry: Mapping[str, Any] | None,
    times: Mapping[str, float | None],
) -> dict[str, Any]:  # fmt: skip
    """FLOPs of a unit and of a prefill, with their MFU.

    Where one thread begins requests and steps, a step without prefill is a token.

    ``times`` are unprofiled: ``unit_ms``, ``ttft_ms``, ``tpot_ms``. ``missing`` says why there are no FLOPs,
    ``mfu_missing`` why they are held against no peak.
    """
    result: dict[str, Any] = dict.fromkeys(("missing", "of", "unit", "prefill", "units", "mfu_missing", "peak"))
    result |= {"not_counted": [], "mfu": _no_shares(), "kernels": []}
    window = next((w for w in process.windows if w.kind is WindowKind.SHAPES and w.trace and len(w.ticks) > 1), None)
    if window is None or window.trace is None:
        result["missing"] = (
            "no step or request was seen that the arithmetic could be counted by"
            if kind == "run"
            else "no slice with the shapes of inputs: the run ended before it, or a unit is too large for one"
        )
        return result
    try:
        trace, ops = load(window.trace), slices.operators(window.trace)
    except (OSError, ValueError, TypeError, KeyError) as fault:
        result["missing"] = f"the slice with shapes could not be read ({type(fault).__name__})"
        return result
    tokens = kind == "step" and window.prefill and bool(window.requests) and times.get("tpot_ms") is not None
    whole, first = _of_tokens(window, process.windows) if tokens else (_ticks(window), [])
    seen = _Slice(window, trace, ops)
    unit, prefill = seen.part(whole), seen.part(first)
    result |= {
        "of": "token" if tokens else kind, "units": unit.stretches, "unit": unit.as_dict(),
        "prefill": prefill.as_dict(),
        "not_counted": [
            {"name": name, "calls": calls / max(unit.stretches + prefill.stretches, 1)}
            for name, calls in (unit.unknown + prefill.unknown).most_common(_MOST)
        ],
    }  # fmt: skip
    result["kernels"] = kernels.rows(trace, seen.ops, seen.operator, seen.computes, seen.rate_of)
    if result["unit"] is None and result["prefill"] is None:
        result["missing"] = _nothing(unit)
        return result
    peaks = _peaks(trace, telemetry)
    if not trace.gpu.size:
        result["mfu_missing"] = "no accelerator in this run, and no peak of a CPU is known"
    elif peaks is None:
        result["mfu_missing"] = "the device's peaks are not in the table"
    elif lacking := sorted(rate for rate in (unit.rates | prefill.rates) if _rate(rate, peaks) is None):
        result["mfu_missing"] = f"the table has no peak of {peaks.device} for {', '.join(lacking)}"
    else:
        devices = max(np.unique(trace.device[trace.gpu]).size, 1)
        result["peak"] = {
            "device": peaks.device, "devices": int(devices),
            "tflops": {rate: _rate(rate, peaks) for rate in (unit.rates | prefill.rates)},
            "tb_per_s": peaks.tb_per_s,
        }  # fmt: skip
        result["mfu"] = {
            "unit": _share(unit, peaks, times["tpot_ms" if tokens else "unit_ms"], devices),
            "unit_busy": _share(unit, peaks, _device_ms(unit), devices),
            "prefill": _share(prefill, peaks, times.get("ttft_ms"), devices),
            "prefill_busy": _share(prefill, peaks, _device_ms(prefill), devices),
        }
    return result


def _no_shares() -> dict[str, float | None]:
    return dict.fromkeys(("unit", "unit_busy", "prefill", "prefill_busy"))


class _Slice:
    """A slice with shapes, to be asked for stretches of it."""

    def __init__(self, window: Window, trace: Trace, ops: Sequence[slices.Operator]) -> None:
        self.trace = trace
        self.ops = list(ops)
        self.fp32 = window.fp32 or {}
        links = link(trace)
        self.operator = slices.work_of(self.ops, trace, links)
        called = np.append(trace.start[trace.calls], np.int64(-1))
        self.launched: Ints = called[links.call_of]  # when a device row's call began; -1 without
        table = np.array([kind_of(name) in _COUNTED for name in trace.names] or [False], np.bool_)
        self.computes: Bools = table[trace.name[trace.gpu]]

    def part(self, stretches: Iterable[Stretch]) -> _Part:
        """The sum over some stretches."""
        part = _Part()
        trace, gpu = self.trace, self.trace.gpu
        counted = np.array([op.count is not None for op in self.ops] + [False], np.bool_)
        for begin, end in stretches:
            part.stretches += 1
            for op in self.ops:
                if begin <= op.start < end:
                    self._add(part, op)
            rows = (self.launched >= begin) & (self.launched < end)
            busy = Busy(trace.start[gpu[rows]], trace.end[gpu[rows]])
            part.device_ns += int((busy.end - busy.start).sum())
            took = (trace.end - trace.start)[gpu]
            part.computing_ns += int(took[rows & self.computes].sum())
            part.covered_ns += int(took[rows & self.computes & counted[self.operator]].sum())
            calls = trace.calls[trace.call_kinds == Call.GRAPH]
            part.graphs += int(((trace.start[calls] >= begin) & (trace.start[calls] < end)).sum())
        return part

    def _add(self, part: _Part, op: slices.Operator) -> None:
        if op.count is None:
            part.unknown[op.name] += 1
            return
        part.flops[op.count.kind] += op.count.flops
        part.rates[self.rate_of(op)] += op.count.flops

    def rate_of(self, op: slices.Operator) -> str:
        """The peak that an operator counts against."""
        assert op.count is not None
        kind = "conv" if op.count.kind in (CONVOLUTION, RECURRENT) else "matmul"
        return "tf32" if op.count.dtype == "fp32" and self.fp32.get(kind) else op.count.dtype


def with_bounds(picture: dict[str, Any] | None, arithmetic: Mapping[str, Any]) -> dict[str, Any] | None:
    """The picture with the bounds of products, attention and convolutions, where the device's peaks are known."""
    peak = arithmetic["peak"]
    if not picture or not peak:
        return picture
    ridge = {dtype: tflops / peak["tb_per_s"] for dtype, tflops in peak["tflops"].items()}
    return {**picture, "kernels": kernels.bounded(picture["kernels"], arithmetic["kernels"], ridge)}


def _ticks(window: Window) -> list[Stretch]:
    spans = units.spans(window, False)
    return list(zip(spans.start.tolist(), spans.end.tolist(), strict=True))


def _of_tokens(window: Window, windows: Sequence[Window]) -> tuple[list[Stretch], list[Stretch]]:
    """Steps that hold no prefill, and prefills: up to the first token, as the unprofiled requests have it."""
    found = units.requests(windows)
    inside = sum(request.inside for request in found) * 2 > len(found)
    steps, begins = sorted(window.ticks), sorted(window.requests)
    prefills: list[Stretch] = []
    not_tokens: set[int] = set()  # starts of steps that hold a prefill, or the end of a request
    for begin, following in itertools.pairwise([*begins, window.end_ns]):
        own = [tick for tick in steps if begin <= tick < following]
        not_tokens.update(tick for tick in steps if tick < begin and not any(tick < s <= begin for s in steps))
        if inside and len(own) > 1:
            not_tokens.add(own[0])
            prefills.append((begin, own[1]))
        elif not inside and own:
            prefills.append((begin, own[0]))
    return [(begin, end) for begin, end in itertools.pairwise(steps) if begin not in not_tokens], prefills


def _nothing(unit: _Part) -> str:
    """Why no arithmetic was counted."""
    if unit.graphs:
        return "the work is replayed from CUDA graphs, whose operators ran when they were captured"
    if unit.unknown:
        names = ", ".join(name for name, _ in unit.unknown.most_common(3))
        return f"the shapes of its operators do not tell ({names})"
    if unit.computing_ns:
        return "its kernels are launched by no operator whose arithmetic is known (compiled code, or another thread)"
    return "no matrix product, attention or convolution was seen in it"


def _peaks(trace: Trace, telemetry: Mapping[str, Any] | None) -> Peaks | None:
    names = {str(device.get("name", "")) for device in trace.devices}
    names = names or {str(device.get("name", "")) for device in (telemetry or {}).get("devices") or ()}
    return peaks_of(names.pop()) if len(names) == 1 else None


def _rate(dtype: str, peaks: Peaks) -> float | None:
    """TFLOP/s of a dtype. fp16 runs at bf16's rate, int8 at fp8's, TF32 at fp32's where there is none."""
    others = {"fp16": "bf16", "int8": "fp8", "tf32": "fp32"}
    return peaks.tflops.get(dtype) or peaks.tflops.get(others.get(dtype, ""))


def _device_ms(part: _Part) -> float | None:
    return part.device_ns / 1e6 / part.stretches if part.device_ns else None


def _share(part: _Part, peaks: Peaks, ms: float | None, devices: int) -> float | None:
    """Time that the arithmetic would take at the peaks ÷ a time."""
    if not ms or not part.stretches or not part.flops:
        return None
    seconds = sum(flops / ((_rate(dtype, peaks) or 0.0) * 1e12) for dtype, flops in part.rates.items())
    return 1e3 * seconds / part.stretches / ms / devices
