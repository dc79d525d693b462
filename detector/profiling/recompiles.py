"""AWP009: functions that are compiled anew while the program serves, by Dynamo's own account."""

from __future__ import annotations

import hashlib
import os
from collections import Counter
from collections.abc import Sequence

from awp_lint.detector.finding import (
    Confidence,
    Evidence,
    Finding,
    Fix,
    PredictedSaving,
    RootCause,
    Safety,
    Span,
    Verdict,
)
from awp_lint.detector.profiling.modules import module_of
from awp_lint.detector.profiling.session import Compilation, ProcessSession

RULE = "AWP009"
_SHARE = 0.01  # of the time that was watched
_REMEDY = (
    "give the compiler what varies as dynamic (torch._dynamo.mark_dynamic, dynamic=True), pad to a few sizes, "
    "or compile them all before the first request"
)


def recompiles(processes: Sequence[ProcessSession]) -> list[Finding]:
    """A finding a function that was compiled again after the first window had opened."""
    found: list[Finding] = []
    for process in processes:
        if not process.windows:
            continue
        begin, end = process.windows[0].start_ns, max(window.end_ns for window in process.windows)
        by_place: dict[tuple[str, int], list[Compilation]] = {}
        for one in process.compilations:
            if one.again and begin <= one.begun_ns <= end:
                by_place.setdefault((one.path, one.line), []).append(one)
        alike: Counter[tuple[str, str]] = Counter()
        for group in by_place.values():
            name = (group[0].path, group[0].function)
            finding = _finding(group, (end - begin) / 1e6, alike[name])
            alike[name] += 1
            if all(finding.id != other.id for other in found):  # of another process
                found.append(finding)
    return found


def _finding(group: list[Compilation], watched_ms: float, ordinal: int) -> Finding:
    first = group[0]
    took = sum(one.took_ms for one in group)
    times = f"{len(group)} time{'s' if len(group) > 1 else ''}"
    reasons = list(dict.fromkeys(one.reason for one in group if one.reason))
    return made_anew(
        (first.path, first.line, first.function),
        f"`{first.function}` is compiled anew while it serves: {times}, {took:.0f} ms in all",
        ("by Dynamo's own account of this run", *(f"because {reason}" for reason in reasons[:3])),
        _REMEDY,
        (len(group), took, watched_ms, "compiling"),
        f"{ordinal}",
    )


def made_anew(
    place: tuple[str, int, str],
    message: str,
    why: tuple[str, ...],
    remedy: str,
    price: tuple[int, float, float, str],
    what: str,
) -> Finding:
    """AWP009 at a path, line and function. ``price``: how often, for how many ms in all, in how many ms that were
    watched, and what it was spent on; ``what`` tells findings of one function apart."""
    calls, took, watched_ms, spent = price
    percent = min(100 * took / watched_ms, 100.0) if watched_ms > 0 else 0.0
    dear = percent >= 100 * _SHARE
    path = os.path.realpath(place[0])
    shown = os.path.relpath(path)
    shown = path if shown.startswith("..") else shown.replace(os.sep, "/")
    library = f"{os.sep}site-packages{os.sep}" in path
    key = f"{RULE}\0{module_of(path)}\0{place[2]}\0{what}"
    return Finding(
        id=hashlib.blake2b(key.encode("utf-8", "surrogateescape"), digest_size=8).hexdigest(),
        rule=RULE,
        name="recompiles",
        path=shown,
        span=Span(place[1], 1, place[1], 2),
        function=place[2],
        message=message,
        why=why,
        root_cause=RootCause.RUNTIME,
        frequency="unknown",
        confidence=Confidence.HIGH,
        origin="dependency" if library else "project",
        fix=Fix(remedy, Safety.MANUAL),
        evidence=Evidence(
            Verdict.CONFIRMED if dear else Verdict.PRESENT_BUT_FREE,
            f"{took:.0f} ms of {spent} in {watched_ms / 1e3:.1f} s that were watched",
            scope="host",
            unit="run",
            calls=calls,
            calls_per_unit=float(calls),
            host_ms=took,
            predicted_saving=PredictedSaving(took, percent, 0.0, percent, "nothing is compiled while it serves")
            if dear
            else None,
        ),
    )
