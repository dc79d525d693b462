"""NVML telemetry in the parent, ten times a second: of the device, never of a line.

Absent hardware, driver or package means an empty summary and one note, never an error.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any

from awp_lint.detector.profiling.session import Session, WindowKind

_PERIOD = 0.1
_POINTS = 400  # of a curve in the report
_POWER_CAP = 0x4
_THROTTLES = {
    _POWER_CAP: "power cap",
    0x8: "hardware slowdown",
    0x20: "thermal (software)",
    0x40: "thermal (hardware)",
    0x80: "power brake",
}
_SLOWER = sum(_THROTTLES) & ~_POWER_CAP  # a device at its power limit does what it was bought for


@dataclass(slots=True)
class Sample:
    """One reading of one device. ``values`` holds what the device could tell."""

    time_ns: int
    values: dict[str, float]
    throttle: int = 0


@dataclass(slots=True)
class Device:
    """A device and its readings."""

    uuid: str
    name: str
    samples: list[Sample] = field(default_factory=list)


class Telemetry:
    """Context manager that samples every device of the machine while it is open."""

    def __init__(self) -> None:
        self.devices: list[Device] = []
        self.note: str | None = None
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Telemetry:
        try:
            import pynvml

            pynvml.nvmlInit()
        except ImportError:
            self.note = 'no telemetry: NVML bindings are missing (pip install "awp-lint[profile]")'
            return self
        except Exception as error:  # NVML's own exceptions: no driver, no permission
            self.note = f"no telemetry: {error}"
            return self
        self._thread = threading.Thread(target=self._run, args=(pynvml,), name="awp-telemetry", daemon=True)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=2.0)

    def _run(self, nvml: Any) -> None:
        readers = []
        try:
            for index in range(nvml.nvmlDeviceGetCount()):
                handle = nvml.nvmlDeviceGetHandleByIndex(index)
                device = Device(_text(nvml.nvmlDeviceGetUUID(handle)), _text(nvml.nvmlDeviceGetName(handle)))
                self.devices.append(device)
                readers.append((device, handle, _Gpm.open(nvml, handle)))
        except Exception as error:
            self.note = f"no telemetry: {error}"
        while not self._stop.wait(_PERIOD):
            for device, handle, gpm in readers:
                device.samples.append(_read(nvml, handle, gpm))
        for _, _, gpm in readers:
            if gpm is not None:
                gpm.close()

    def summary(self, session: Session) -> dict[str, Any]:
        """Means over the windows' time, by device; devices that the program did not use are left out when known."""
        used = {uuid.removeprefix("GPU-") for p in session.processes for uuid in p.device_uuids}
        spans = [
            (w.start_ns, w.end_ns)
            for p in session.processes
            for w in p.windows
            if w.kind in (WindowKind.BASELINE, WindowKind.MARKS)
        ]
        chosen = [d for d in self.devices if not used or d.uuid.removeprefix("GPU-") in used]
        found = [{**summarise(d, spans), "series": series(d, session.started_ns)} for d in chosen]
        return {"devices": found, "note": self.note, "period_s": _PERIOD}


def summarise(device: Device, spans: list[tuple[int, int]]) -> dict[str, Any]:
    """Mean of each reading inside the spans (everywhere, without spans) and the share of samples that throttled."""
    inside = [s for s in device.samples if not spans or any(a <= s.time_ns <= b for a, b in spans)]
    inside = inside or device.samples
    names = dict.fromkeys(name for sample in inside for name in sample.values)
    throttled = {
        word: sum(1 for s in inside if s.throttle & bit) / len(inside)
        for bit, word in _THROTTLES.items()
        if any(s.throttle & bit for s in inside)
    }
    return {
        "uuid": device.uuid,
        "name": device.name,
        "samples": len(inside),
        "throttled": throttled,
        **{n: round(statistics.fmean(s.values[n] for s in inside if n in s.values), 3) for n in names},
    }


def power_limited(telemetry: Mapping[str, Any] | None) -> float:
    """The share of samples in which a device ran at reduced clocks to keep within its power, of the one with most."""
    devices = telemetry["devices"] if telemetry else []
    return max((device["throttled"].get(_THROTTLES[_POWER_CAP], 0.0) for device in devices), default=0.0)


def series(device: Device, origin_ns: int) -> dict[str, list[float | None]]:
    """Every reading over the whole run in at most :data:`_POINTS` means; ``t_s`` counts from the run's start."""
    samples = device.samples
    if not samples:
        return {}
    step = -(-len(samples) // _POINTS)
    groups = [samples[at : at + step] for at in range(0, len(samples), step)]
    names = dict.fromkeys(name for sample in samples for name in sample.values)
    found: dict[str, list[float | None]] = {
        "t_s": [round((statistics.fmean(s.time_ns for s in group) - origin_ns) / 1e9, 2) for group in groups]
    }
    for name in names:
        means = [[s.values[name] for s in group if name in s.values] for group in groups]
        found[name] = [float(f"{statistics.fmean(values):.5g}") if values else None for values in means]
    found["throttled"] = [float(any(s.throttle & _SLOWER for s in group)) for group in groups]
    return found


def _read(nvml: Any, handle: Any, gpm: _Gpm | None) -> Sample:
    values: dict[str, float] = {}

    def take(read: Callable[[], dict[str, float]]) -> None:
        try:
            values.update(read())
        except Exception:  # a reading that this device does not have
            return

    def utilisation() -> dict[str, float]:
        rates = nvml.nvmlDeviceGetUtilizationRates(handle)
        return {"gpu_util_pct": float(rates.gpu), "memory_util_pct": float(rates.memory)}

    def memory() -> dict[str, float]:
        info = nvml.nvmlDeviceGetMemoryInfo(handle)
        return {"memory_used_bytes": float(info.used), "memory_total_bytes": float(info.total)}

    take(utilisation)
    take(memory)
    take(lambda: {"power_w": nvml.nvmlDeviceGetPowerUsage(handle) / 1000})
    take(lambda: {"sm_clock_mhz": float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_SM))})
    take(lambda: {"memory_clock_mhz": float(nvml.nvmlDeviceGetClockInfo(handle, nvml.NVML_CLOCK_MEM))})
    take(lambda: {"temperature_c": float(nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))})
    take(lambda: {"pcie_tx_kb_s": float(nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_TX_BYTES))})
    take(lambda: {"pcie_rx_kb_s": float(nvml.nvmlDeviceGetPcieThroughput(handle, nvml.NVML_PCIE_UTIL_RX_BYTES))})
    if gpm is not None:
        take(gpm.read)
    throttle = 0
    try:
        throttle = int(nvml.nvmlDeviceGetCurrentClocksThrottleReasons(handle))
    except Exception:
        throttle = 0
    return Sample(time.time_ns(), values, throttle)


class _Gpm:
    """GPM counters (Hopper and later): the change between two samples."""

    _METRICS = (
        ("sm_active_pct", "NVML_GPM_METRIC_SM_UTIL"),
        ("sm_occupancy_pct", "NVML_GPM_METRIC_SM_OCCUPANCY"),
        ("tensor_active_pct", "NVML_GPM_METRIC_ANY_TENSOR_UTIL"),
        ("dram_active_pct", "NVML_GPM_METRIC_DRAM_BW_UTIL"),
    )

    def __init__(self, nvml: Any, handle: Any) -> None:
        self._nvml, self._handle = nvml, handle
        self._before, self._after = nvml.nvmlGpmSampleAlloc(), nvml.nvmlGpmSampleAlloc()
        nvml.nvmlGpmSampleGet(handle, self._before)

    @classmethod
    def open(cls, nvml: Any, handle: Any) -> _Gpm | None:
        """The counters of a device, or None where it has none."""
        try:
            support = nvml.nvmlGpmQueryDeviceSupport(handle)
            return cls(nvml, handle) if support.isSupportedDevice else None
        except Exception:
            return None

    def read(self) -> dict[str, float]:
        """Percentages since the last reading."""
        nvml = self._nvml
        nvml.nvmlGpmSampleGet(self._handle, self._after)
        query = nvml.c_nvmlGpmMetricsGet_t()
        query.version = nvml.NVML_GPM_METRICS_GET_VERSION
        query.sample1, query.sample2 = self._before, self._after
        query.numMetrics = len(self._METRICS)
        for slot, (_, constant) in enumerate(self._METRICS):
            query.metrics[slot].metricId = getattr(nvml, constant)
        nvml.nvmlGpmMetricsGet(query)
        self._before, self._after = self._after, self._before
        values = [(name, float(query.metrics[slot].value)) for slot, (name, _) in enumerate(self._METRICS)]
        return {name: value for name, value in values if value == value}

    def close(self) -> None:
        """Free the two samples."""
        for sample in (self._before, self._after):
            try:
                self._nvml.nvmlGpmSampleFree(sample)
            except Exception:
                return


def _text(value: str | bytes) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value
