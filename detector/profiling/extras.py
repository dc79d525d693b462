"""What only the profile sees: findings of the AWP0xx family, at the loop that counts the units.

No rule flagged what they describe and their exact lines are not known, so that they price the loop and count for
nothing in the exit code. What a finding of the same file already explains is left out.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from typing import Any

from awp_lint.detector.finding import (
    Confidence,
    Evidence,
    Finding,
    Mark,
    PredictedSaving,
    RootCause,
    Span,
    Verdict,
)
from awp_lint.detector.profiling.costs import Costs
from awp_lint.detector.profiling.plans import attention_plans
from awp_lint.detector.profiling.ranks import straggler
from awp_lint.detector.profiling.recompiles import recompiles
from awp_lint.detector.profiling.session import PlannedMark, ProcessSession

MIN_SHARE = 0.05  # of the unit that an unflagged cause must idle away
MIN_SYNC_SHARE = 0.02
TINY_MS, MANY, IDLE = 0.010, 100, 0.20  # mean kernel, kernels a unit, gap ratio
_LAUNCH_RULES = ("AWP203", "AWP204", "AWP301", "AWP401", "AWP405")


def extra_findings(
    processes: Sequence[tuple[ProcessSession, Costs]],
    findings: Sequence[Finding],
    kind: str,
    picture: Mapping[str, Any] | None = None,
) -> list[Finding]:
    """What the run as a whole shows: of the device, of ranks, of the compiler."""
    own = [process for process, _ in processes]
    plans = attention_plans([(process, costs.facts) for process, costs in processes], kind)
    return [*_device_findings(processes, findings, kind, picture), *_straggler(own, kind), *recompiles(own), *plans]


def _straggler(processes: Sequence[ProcessSession], kind: str) -> list[Finding]:
    """AWP007: a rank that begins its steps later than the others, in windows with nothing switched on."""
    lag = straggler(processes)
    if lag is None or lag.share <= 0:
        return []
    late = next(process for process in processes if process.rank == lag.rank)
    loops = [p for p in late.marks if p.unit == kind and p.index in late.reached]
    if not loops:
        return []
    what = (
        f"rank {lag.rank} begins its steps {lag.ms:.2f} ms behind the first rank, and is the last in {lag.last:.0%} of "
        f"{lag.steps} common steps: its host work between the collectives of two steps is slow"
    )
    place = (loops[0], _is_late(late, loops[0]))
    return [_finding("AWP007", "straggler", what, RootCause.COMMUNICATION, place, kind, lag.ms, lag.ms / lag.share)]


def _is_late(process: ProcessSession, loop: PlannedMark) -> bool:
    return process.late is not None and loop.index >= process.late[0]


def _device_findings(
    processes: Sequence[tuple[ProcessSession, Costs]],
    findings: Sequence[Finding],
    kind: str,
    picture: Mapping[str, Any] | None,
) -> list[Finding]:
    """Of the process that did the most device work; none without a unit loop, a device or a trusted trace."""
    usable = [
        (process, costs)
        for process, costs in processes
        if costs.facts.busy_ms.size and costs.facts.gpu_seen and not costs.facts.problems
        if costs.time.ms.size and costs.time.stable
    ]
    if not usable or kind == "run":
        return []
    process, costs = max(usable, key=lambda entry: float(entry[1].facts.busy_ms.sum()))
    loops = [p for p in process.marks if p.unit == kind and p.index in process.reached]
    if not loops:
        return []
    loop, facts, unit_ms = loops[0], costs.facts, float(costs.time.ms.mean())
    place = (loop, _is_late(process, loop))
    found: list[Finding] = []
    host = float(facts.unflagged_host_ms.mean()) if facts.unflagged_host_ms.size else 0.0
    sync = float(facts.unflagged_sync_ms.mean()) if facts.unflagged_sync_ms.size else 0.0
    pageable = float(facts.unflagged_pageable_ms.mean()) if facts.unflagged_pageable_ms.size else 0.0
    idle = max(
        unit_ms - float(facts.busy_ms.mean()), 0.0
    )  # in a traced step the device idles longer than it really does
    host, sync = min(host, idle), min(sync, idle)
    if host >= MIN_SHARE * unit_ms:
        what = f"the device idles {host:.2f} ms a {kind} behind host work that no finding covers"
        found.append(_finding("AWP001", "idle-gap", what, RootCause.RUNTIME, place, kind, host, unit_ms))
    if sync >= MIN_SYNC_SHARE * unit_ms:
        what = f"waits for the device outside every marked statement leave it idle for {sync:.2f} ms a {kind}"
        found.append(_finding("AWP002", "unflagged-sync", what, RootCause.RUNTIME, place, kind, sync, unit_ms))
    if pageable >= 0.03 * unit_ms:
        what = f"copies with pageable host memory outside every marked statement take {pageable:.2f} ms a {kind}"
        found.append(_finding("AWP003", "pageable-traffic", what, RootCause.MEMORY, place, kind, pageable, unit_ms))
    exposed = float(((picture or {}).get("communication") or {}).get("exposed_ms") or 0.0)
    if exposed >= MIN_SHARE * unit_ms:
        what = f"collectives run for {exposed:.2f} ms a {kind} with no other kernel beside them"
        found.append(
            _finding("AWP008", "exposed-communication", what, RootCause.COMMUNICATION, place, kind, exposed, unit_ms)
        )
    kernels, busy = float(facts.kernels.mean()), float(facts.busy_ms.mean())
    explained = any(f.rule in _LAUNCH_RULES and os.path.realpath(f.path) == loop.path for f in findings)
    if kernels >= MANY and busy / kernels <= TINY_MS and busy <= (1 - IDLE) * unit_ms and not explained:
        mean = 1000 * busy / kernels
        what = f"{kernels:.0f} kernels a {kind} of {mean:.1f} µs on average; the device idles {idle:.2f} ms"
        found.append(_finding("AWP004", "tiny-kernels", what, RootCause.RUNTIME, place, kind, idle, unit_ms))
    return found


def device_notes(telemetry: Mapping[str, Any] | None) -> list[str]:
    """AWP005 and AWP006: of the device, not of a line."""
    notes = []
    for device in (telemetry or {}).get("devices") or ():
        for word, share in device.get("throttled", {}).items():
            if share >= 0.1 and word != "power cap":
                notes.append(
                    f"AWP005 throttled: {device['name']} ran at reduced clocks ({word}) in {share:.0%} of samples"
                )
        used, total = device.get("memory_used_bytes"), device.get("memory_total_bytes")
        if used and total and used >= 0.95 * total:
            notes.append(f"AWP006 memory-pressure: {device['name']} has {used / total:.0%} of its memory in use")
    return notes


def _finding(
    rule: str,
    name: str,
    message: str,
    cause: RootCause,
    place: tuple[PlannedMark, bool],
    kind: str,
    ms: float,
    unit_ms: float,
) -> Finding:
    loop, late = place
    mark: Mark = loop.mark
    path = os.path.relpath(loop.path)
    shown = loop.path if path.startswith("..") else path.replace(os.sep, "/")
    key = hashlib.blake2b(f"{rule}\0{loop.module}\0{mark.function}".encode(), digest_size=8).hexdigest()
    percent = 100 * ms / unit_ms
    saving = PredictedSaving(ms, percent, 0.0, percent, "the device never idles here; upper bound, not yet replayed")
    return Finding(
        id=key,
        rule=rule,
        name=name,
        path=shown,
        span=Span(mark.line, mark.column + 1, mark.end_line, mark.end_column + 1),
        function=mark.function,
        message=message,
        why=("measured in this run; no rule flagged the line",),
        root_cause=cause,
        frequency=kind,
        confidence=Confidence.MEDIUM,
        origin="dependency" if late else "project",
        evidence=Evidence(
            Verdict.UNATTRIBUTABLE, f"{message}; the line is not known", unit=kind, predicted_saving=saving
        ),
    )
