"""The verdict on a finding, by the contract's table, with its reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from awp_lint.detector.finding import Copies, Event, Evidence, Finding, PredictedSaving, Verdict
from awp_lint.detector.profiling.bounds import Bound, saving_bound
from awp_lint.detector.profiling.evidence import Measured
from awp_lint.detector.profiling.percentiles import percentiles
from awp_lint.detector.profiling.replay import Saving

MIN_PCT = 1.0
MIN_MS = 0.05
MAYBE = 0.05  # of the unit: what might be saved, and is not said to be free, where no replay can tell
POWER_LIMITED = 0.3  # of telemetry's samples
REPLAY = "replay"
UPPER_BOUND = "upper bound, not yet replayed"

_ASSUMPTIONS = {
    Event.WAIT: "the host never blocks here and the device never idles behind it",
    Event.COPY: "the copy disappears from the step",
    Event.LAUNCHES: "the launches inside become one",
    Event.HOST: "the statement takes no time",
    Event.NONE: "",
}
_MISSING = {
    Event.WAIT: "it never waited for the device",
    Event.COPY: "it never copied anything",
    Event.LAUNCHES: "it never started device work",
    Event.HOST: "it never ran",
    Event.NONE: "",
}


def static_only(reason: str) -> Evidence:
    """Evidence of a finding that no run can speak about."""
    return Evidence(Verdict.STATIC_ONLY, reason)


def seen_waiting(evidence: Evidence | None) -> Evidence:
    """Of a statement that torch itself saw waiting: where the run could not price it, that is all there is to say."""
    if evidence is None or evidence.verdict in (Verdict.STATIC_ONLY, Verdict.NOT_REACHED):
        return Evidence(Verdict.UNATTRIBUTABLE, "the census saw it wait; the run ended before it could be priced")
    return evidence


def judge(finding: Finding, measured: Measured) -> Evidence:
    """The evidence for a finding with a mark."""
    assert finding.mark is not None
    event = finding.mark.expects
    if not measured.reached and measured.seen == 0:
        if measured.other_copy is not None:
            return Evidence(Verdict.UNATTRIBUTABLE, f"another copy of the file ran: {measured.other_copy}")
        return Evidence(Verdict.NOT_REACHED, "its code never ran in this run")
    if measured.seen == 0:
        if measured.compiled:
            return Evidence(
                Verdict.UNATTRIBUTABLE,
                "it ran before the windows; in them compiled regions ran, inside which marks are silent",
            )
        return Evidence(Verdict.REACHED_OUTSIDE_WINDOWS, "its code ran, but in no window that could be priced")
    on_host = event is Event.HOST and not measured.gpu_seen
    if event is Event.NONE:
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, "it ran, but this rule has no event a run can show")
    if not on_host and (reason := _blind(measured)) is not None:
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, reason)
    if not on_host and not _happened(event, measured):
        if measured.enough:
            return _evidence(finding, measured, Verdict.REFUTED, f"ran {measured.seen} times and {_MISSING[event]}")
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, _few(measured))
    return _priced(finding, measured, on_host)


def _priced(finding: Finding, measured: Measured, on_host: bool) -> Evidence:
    bound = saving_bound(finding, measured)
    if bound is None:
        reason = "it ran, but no whole unit was seen without the profiler, so that nothing can be set against it"
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, reason)
    unit_ms = float(measured.unit_ms.mean())
    threshold = max(MIN_PCT / 100 * unit_ms, MIN_MS)
    what = _what(finding, measured)
    if not measured.stable:
        return _drifting(finding, measured, bound, threshold, what)
    if measured.enough and bound.high_ms < threshold:
        return _evidence(finding, measured, Verdict.PRESENT_BUT_FREE, _free(what, bound, measured), bound)
    refusal = None
    if not on_host and bound.high_ms >= threshold and measured.unit != "call":
        assert finding.mark is not None and measured.whatif is not None
        refusal = _powerless(measured) or measured.whatif.refusal(measured.mark, measured.call_ms)
        if refusal is None:
            saving = measured.whatif.saving(measured.mark, finding.mark.expects, finding.root_cause)
            saving = saving.times(_share(measured))
            return _replayed(finding, measured, saving, bound, threshold, what)
    if bound.low_ms >= threshold:
        if on_host:
            return _evidence(finding, measured, Verdict.CONFIRMED, what, bound)
        reason = f"{what}; {UPPER_BOUND}" + (f" ({refusal})" if refusal else "")
        verdict = Verdict.CONFIRMED if _host_bound(measured) else Verdict.UNATTRIBUTABLE
        return _evidence(finding, measured, verdict, reason, bound)
    if refusal is not None and bound.high_ms >= MAYBE * unit_ms:
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, f"{what}; {UPPER_BOUND} ({refusal})", bound)
    if measured.enough:
        return _evidence(finding, measured, Verdict.PRESENT_BUT_FREE, _free(what, bound, measured), bound)
    return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, _few(measured))


def joint_saving(
    findings: Sequence[Finding], judged: Mapping[str, Evidence], measured: Mapping[str, Measured]
) -> dict[str, object] | None:
    """What all confirmed findings gain together, by one replay; None where none was replayed.

    ``{"ms", "pct", "steps": [{"id", "marginal_ms"}, …]}``, the dearest finding first. Only findings of one process are
    joined, the one with the most of them.
    """
    groups: dict[int, list[tuple[Finding, Measured, float]]] = {}
    for finding in findings:
        evidence = judged.get(finding.id)
        if evidence is None or evidence.verdict is not Verdict.CONFIRMED or evidence.predicted_saving is None:
            continue
        here = measured[finding.id]
        if here.whatif is not None and evidence.predicted_saving.assumption.startswith(REPLAY):
            groups.setdefault(id(here.whatif), []).append((finding, here, evidence.predicted_saving.ms))
    if not groups:
        return None
    largest = max(groups, key=lambda number: len(groups[number]))
    group = sorted(groups[largest], key=lambda entry: -entry[2])
    first = group[0][1]
    assert first.whatif is not None
    wanted = [(here.mark, f.mark.expects, f.root_cause) for f, here, _ in group if f.mark is not None]
    gains = first.whatif.joint(wanted)
    shares = [_share(here) for _, here, _ in group]
    marginal = [s * (gain - before) for s, gain, before in zip(shares, gains, [0.0, *gains[:-1]], strict=True)]
    return {
        "ms": sum(marginal),
        "pct": 100 * sum(marginal) / float(first.unit_ms.mean()),
        "steps": [{"id": f.id, "marginal_ms": ms} for (f, _, _), ms in zip(group, marginal, strict=True)],
    }


def _share(measured: Measured) -> float:
    """How often a statement runs, of how often it does in the slices: these are no sample of what runs now and then,
    and a mark that runs often is recorded in some of their units only."""
    assert measured.whatif is not None
    often = measured.whatif.rate(measured.mark)
    return measured.calls_per_unit / often if often else 1.0


def _host_bound(measured: Measured) -> bool:
    """Whether the device idles for most of the unit, so that the host's time is the unit's and a bound is close.

    Where the device is busy a wait or a copy may only move: without a replay nothing is confirmed there. A call beside
    the units counts by itself.
    """
    if measured.unit == "call":
        return bool((measured.mean("idle") or 0.0) >= 0.5 * (measured.mean("host") or 0.0))
    return measured.busy_ms is not None and measured.busy_ms <= 0.5 * float(measured.unit_ms.mean())


def _powerless(measured: Measured) -> str | None:
    """Why time won from the device's idling is not all won: kept busier within the same power, it runs slower."""
    if measured.power_limited < POWER_LIMITED:
        return None
    return f"the device is at its power limit in {measured.power_limited:.0%} of samples: kept busier, it runs slower"


def _drifting(finding: Finding, measured: Measured, bound: Bound, threshold: float, what: str) -> Evidence:
    """The verdict of a run whose baselines disagree: only what holds whichever is right, and no saving."""
    drift = measured.drift or 0.0
    reason = f"{what}; the two baselines differ by {drift:.0%}: no saving is printed"
    close = not measured.gpu_seen or _host_bound(measured)
    if drift < 0.5 and close and bound.low_ms >= threshold * (1 + drift) ** 2:
        basis = f"; {UPPER_BOUND}" if measured.gpu_seen else ""
        return _evidence(finding, measured, Verdict.CONFIRMED, reason + basis)
    if drift < 0.5 and measured.enough and bound.high_ms * (1 + drift) ** 2 < threshold:
        return _evidence(finding, measured, Verdict.PRESENT_BUT_FREE, reason)
    return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, reason)


def _replayed(
    finding: Finding, measured: Measured, saving: Saving, bound: Bound, threshold: float, what: str
) -> Evidence:
    """The verdict by a replay's saving, which is capped by the bound."""
    assert finding.mark is not None
    unit_ms = float(measured.unit_ms.mean())
    high = min(max(saving.high_ms, 0.0), bound.high_ms)
    point = min(max(saving.ms, 0.0), high)
    low = min(max(saving.low_ms, 0.0), point)
    predicted = PredictedSaving(
        point, 100 * point / unit_ms, 100 * low / unit_ms, 100 * high / unit_ms,
        f"{REPLAY}: {_ASSUMPTIONS[finding.mark.expects]}",
    )  # fmt: skip
    gains = f"{what}; a replay without it gains {point:.3f} ms ({low:.3f} to {high:.3f})"
    if low >= threshold:
        verdict, reason = Verdict.CONFIRMED, what
    elif point >= threshold and high >= MAYBE * unit_ms:
        verdict, reason = Verdict.UNATTRIBUTABLE, f"{gains}: too wide a range to call it dear or free"
    elif measured.enough:
        verdict, reason = Verdict.PRESENT_BUT_FREE, gains
    else:
        return _evidence(finding, measured, Verdict.UNATTRIBUTABLE, _few(measured))
    return replace(_evidence(finding, measured, verdict, reason), predicted_saving=predicted)


def _blind(measured: Measured) -> str | None:
    """Why the run cannot show a device event; None when it can."""
    if not measured.cuda and not measured.gpu_seen:
        return "no accelerator in this run: only host time was measured"
    if not measured.traces:
        return "no trace slice was recorded: only host time was measured"
    if not measured.gpu_seen:
        return "the trace holds no device work (nothing ran on the device, or its activity could not be recorded)"
    if measured.problems:
        return f"the trace is not trusted: {measured.problems[0]}"
    if not measured.figures["calls"].size:
        return "no whole unit lies in a trace slice"
    if not measured.figures["calls"].any():
        return "it ran, but not in a traced unit"
    return None


def _happened(event: Event, measured: Measured) -> bool:
    name = {Event.WAIT: "waits", Event.COPY: "copies", Event.LAUNCHES: "launches", Event.HOST: "calls"}[event]
    return bool(measured.figures[name].any())


def _few(measured: Measured) -> str:
    times = "once" if measured.seen == 1 else f"{measured.seen} times"
    return f"ran only {times} in the windows: too few to judge"


def _what(finding: Finding, measured: Measured) -> str:
    assert finding.mark is not None
    unit, event = measured.unit, finding.mark.expects
    per = "in the window" if unit == "run" else f"a {unit}"
    waits, launches = measured.mean("waits") or 0.0, measured.mean("launches") or 0.0
    host = measured.host or 0.0
    if event is Event.WAIT:
        blocked, idle = measured.blocked or 0.0, measured.idle or 0.0
        return f"waits {waits:.4g} times {per}, blocks {blocked:.3f} ms and leaves the device idle for {idle:.3f} ms"
    if event is Event.COPY:
        copies = measured.copies
        return f"copies {copies.h2d_bytes + copies.d2h_bytes:.4g} bytes {per}"
    if event is Event.LAUNCHES:
        return f"{launches:.4g} launches {per}, {measured.mean('gpu') or 0.0:.3f} ms of device work"
    return f"{host:.3f} ms of host time {per}"


def _free(what: str, bound: Bound, measured: Measured) -> str:
    per = "" if measured.unit == "run" else f" of the {measured.unit}"
    share = 100 * max(bound.high_ms, 0.0) / float(measured.unit_ms.mean())
    return f"{what}; at most {share:.2g} %{per} could be saved"


def _evidence(
    finding: Finding, measured: Measured, verdict: Verdict, reason: str, bound: Bound | None = None
) -> Evidence:
    assert finding.mark is not None
    device = measured.gpu_seen and measured.figures["calls"].size > 0
    saving = None
    on_host = not measured.gpu_seen
    if bound is not None and measured.stable:
        percent = 100 / float(measured.unit_ms.mean())
        basis = "host time, on a run without accelerator" if on_host else UPPER_BOUND
        saving = PredictedSaving(
            ms=bound.ms,
            pct=percent * bound.ms,
            low_pct=percent * bound.low_ms if on_host else 0.0,
            high_pct=percent * bound.high_ms,
            assumption=f"{_ASSUMPTIONS[finding.mark.expects]}; {basis}",
        )
    return Evidence(
        verdict=verdict,
        reason=reason,
        scope="host" if on_host else "device",
        unit=measured.unit,
        calls=measured.seen,
        calls_per_unit=measured.calls_per_unit,
        host_ms=measured.host,
        blocked_ms=measured.blocked,
        gpu_ms=measured.mean("gpu") if device else None,
        idle_ms=measured.idle,
        launches=measured.mean("launches") if device else None,
        copies=measured.copies if device else Copies(),
        predicted_saving=saving,
        call_ms=percentiles(measured.calls_ms),
    )
