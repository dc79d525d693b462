"""What a finding can cost at most, for runs in which no replay can say what it does cost."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from awp_lint.detector.finding import Event, Finding, RootCause
from awp_lint.detector.profiling.evidence import Measured
from awp_lint.detector.profiling.timeline import Floats
from awp_lint.detector.profiling.units import resampled_mean

LAUNCH_MS = 0.01  # host time of a launch: what remains when many become one
AGREES = 0.02  # of the unit: the device's time is of other windows than the unit's


@dataclass(frozen=True, slots=True)
class Bound:
    """Ms a unit. ``ms`` is what the statement holds up while the device idles, ``low_ms`` its lower end; ``high_ms`` is
    the upper end of what its removal can gain at all."""

    ms: float
    low_ms: float
    high_ms: float


def saving_bound(finding: Finding, measured: Measured) -> Bound | None:
    """Bounds of what a unit gains without the finding; None where a unit's time or the figures are missing.

    Without the statement the host is earlier by its time at most, and the device cannot gain more than it idles in the
    unprofiled unit, so far as that is known; where kernels or copies themselves would go, their time comes on top, and
    what a read starts itself, since its fix may compute otherwise. What the statement *causes* is counted narrower: no
    more than the device idles from its start to its thread's next device work. Without a device both are its host time.
    """
    if not measured.unit_ms.size or (measured.unit_source == "trace" and measured.unit != "run"):
        return None
    unit_ms = float(measured.unit_ms.mean())
    if not measured.gpu_seen:
        series = measured.host_ms if measured.host_ms.size else measured.figures["host"] / measured.stretch
        return _bound(series, series, unit_ms, measured.seen) if series.size else None
    if not measured.figures["host"].size:
        return None
    host, extra, own = _host(finding, measured), _extra(finding, measured), _own(finding, measured)
    caused = np.minimum(host, measured.figures["idle"] / measured.stretch) + extra
    idle = max(unit_ms - (measured.busy_ms or 0.0), AGREES * unit_ms)
    cap = min(idle + float((extra + own).mean()), unit_ms)
    return _bound(caused, host + extra + own, cap, measured.seen)


def _host(finding: Finding, measured: Measured) -> Floats:
    """The statement's host time in traced units, at marks-only speed."""
    assert finding.mark is not None
    traced, host = measured.mean("host"), measured.host
    scale = host / traced if traced and host is not None else 1.0
    series = measured.figures["host"] * scale
    if finding.mark.expects is Event.LAUNCHES:
        series = np.maximum(series - LAUNCH_MS * measured.figures["calls"], 0.0)
    return series


def _extra(finding: Finding, measured: Measured) -> Floats:
    """Device time that would go with the finding."""
    assert finding.mark is not None
    if finding.mark.expects is Event.COPY:
        return measured.figures["exposed"]
    if finding.mark.expects is Event.LAUNCHES and finding.root_cause in (RootCause.COMPUTE, RootCause.MEMORY):
        return measured.figures["fusible"]
    return np.zeros(measured.figures["host"].size)


def _own(finding: Finding, measured: Measured) -> Floats:
    """Device time that may go with the finding: of a read what it starts, of a batch's items all but one."""
    assert finding.mark is not None
    event = finding.mark.expects
    if event is Event.WAIT:
        return measured.figures["gpu"]
    if event is Event.LAUNCHES and finding.root_cause is RootCause.SCHEDULING:
        return measured.figures["fusible"]
    return np.zeros(measured.figures["host"].size)


def _bound(caused: Floats, removable: Floats, cap: float, seen: int) -> Bound:
    if caused.size < 3:  # nothing to resample: executions are taken to vary as much as they last
        spread = 1.96 / max(seen, 1) ** 0.5
        low, high = caused.mean() * max(0.0, 1 - spread), removable.mean() * (1 + spread)
    else:
        lower, upper = resampled_mean([caused, removable])
        low, high = np.percentile(lower, 2.5), np.percentile(upper, 97.5)
    return Bound(min(float(caused.mean()), cap), min(float(low), cap), min(float(high), cap))
