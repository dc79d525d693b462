"""Percentiles of times: medians hide what one in twenty waits for."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from awp_lint.detector.finding import Percentiles
from awp_lint.detector.profiling import units
from awp_lint.detector.profiling.session import ProcessSession, WindowKind
from awp_lint.detector.profiling.timeline import Floats

LEAST = {"p50": 3, "p95": 20, "p99": 100}  # values; with fewer the largest one would be called a percentile


def percentiles(values: Floats) -> Percentiles | None:
    """Of a series in ms, by linear interpolation; None where it is too short even for a median."""
    if values.size < LEAST["p50"]:
        return None
    found = {
        name: float(np.percentile(values, int(name[1:]))) if values.size >= least else None
        for name, least in LEAST.items()
    }
    middle = found["p50"]
    assert middle is not None
    return Percentiles(int(values.size), middle, found["p95"], found["p99"])


def as_dict(found: Percentiles | None) -> dict[str, Any] | None:
    """For the report."""
    if found is None:
        return None
    rounded = {name: None if (v := getattr(found, name)) is None else round(v, 4) for name in LEAST}
    return {"values": found.values, **rounded}


def of_process(process: ProcessSession, kind: str) -> Mapping[str, dict[str, Any] | None]:
    """Of steps and of requests, unprofiled: ``{"step": …, "request": …}``, None where there are too few.

    A request lasts from its begin to the next one's: pauses between requests are left out, as they are between steps.
    """
    step = units.unit_time(process, kind) if kind != "run" else None
    own = percentiles(step.ms) if step is not None and step.source == WindowKind.BASELINE.value else None
    if kind == "request":
        return {"step": None, "request": as_dict(own)}
    chosen = {id(w): w for r in units.steady(process.windows)[0] for w in r.of(WindowKind.BASELINE)}
    rows = [units.between(np.asarray(w.requests, np.int64)).ms for w in chosen.values()] if kind == "step" else []
    requests = np.concatenate(rows) if rows else np.empty(0)
    return {"step": as_dict(own), "request": as_dict(percentiles(requests))}
