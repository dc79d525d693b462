"""The run in at most thirty lines: what a unit costs, why the device idles, what to mend first."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from awp_lint.detector.finding import Finding, Verdict
from awp_lint.detector.profiling.roots import ROOTS
from awp_lint.detector.reporting import words
from awp_lint.detector.reporting.metrics import METRICS
from awp_lint.detector.reporting.report import Report, verdict_of
from awp_lint.detector.reporting.terminal import Line, line

MAX_LINES = 30
_TOP = 6
_BAR = 24


def story(report: Report) -> list[Line]:
    """The lines; none without a run."""
    profile = report.profile
    if profile is None:
        return []
    lines = [*_time(profile), *_idle(profile), *_device(profile), *_top(report.findings, profile)]
    return [tuple((text.replace("\u202f", " "), style) for text, style in one) for one in lines[:MAX_LINES]]


def _time(profile: Mapping[str, Any]) -> Iterator[Line]:
    unit = profile.get("unit") or "run"
    unit_ms, busy, gap = profile["unit_ms"], profile["gpu_busy_ms"], profile["gap_ratio"]
    if unit_ms is None:
        return
    yield line(("In short", "bold"))
    if busy is None or gap is None:
        yield line(f"  a {unit} takes {words.ms(unit_ms)}; without an accelerator only host time can be priced")
        yield from _arithmetic(profile)
        return
    limit = METRICS["gap_ratio"].limit or 0.0
    state = "green" if gap < limit else "bold red"
    yield line(
        f"  a {unit} takes {words.ms(unit_ms)}, the device works {words.ms(busy)} of it and idles ",
        (words.percent(gap), state), f" (healthy: {METRICS['gap_ratio'].healthy})",
    )  # fmt: skip


def _idle(profile: Mapping[str, Any]) -> Iterator[Line]:
    causes = profile.get("causes") or {}
    if not causes or profile["unit_ms"] is None or profile["gpu_busy_ms"] is None:
        return
    total = max(profile["unit_ms"] - profile["gpu_busy_ms"], 0.0)
    for name, share in sorted(causes.items(), key=lambda item: -item[1]):
        if share < 0.005:
            continue
        bar = "█" * max(round(_BAR * share), 1)
        figures = f" {words.percent(share):>5}  {words.ms(share * total)}"
        yield line(f"    {words.CAUSES[name]:<20}", (f"{bar:<{_BAR}}", "blue"), figures)
    roots = dict.fromkeys(words.ROOT_SENTENCES, 0.0)
    for name, share in causes.items():
        roots[ROOTS[name]] += share
    shares = " · ".join(f"{name} {words.percent(share)}" for name, share in roots.items())
    yield line("  by root cause: ", (shares, "dim"))
    path = {kind: share for kind, share in (profile.get("critical_path") or {}).items() if share >= 0.005}
    if path:
        kinds = sorted(path, key=lambda kind: -path[kind])
        yield line(
            "  critical path: ",
            (" · ".join(f"{words.PATH[kind]} {words.percent(path[kind])}" for kind in kinds), "dim"),
        )
    if profile["root_cause"]:
        sentence = words.ROOT_SENTENCES.get(profile["root_cause"], profile["root_cause"])
        yield line("  root cause ", (profile["root_cause"], "bold"), f": {sentence}")


def _device(profile: Mapping[str, Any]) -> Iterator[Line]:
    picture = profile.get("picture") or {}
    launches, kernels = picture.get("launches"), picture.get("kernels") or []
    if launches and launches["kernel_us"]:
        latency = launches["latency_us"]
        wait = f", launch latency {words.number(latency['p50'])} µs" if latency else ""
        yield line(
            f"  {words.number(launches['launches'])} launches, {words.number(launches['kernels'])} kernels of "
            f"{words.number(launches['kernel_us']['p50'])} µs in the median, "
            f"{words.percent(launches['tiny_share'])} of 5 µs and less{wait}"
        )
    if profile["gpu_busy_ms"] is not None:
        yield from _arithmetic(profile)
    for row in kernels[:3]:
        yield line(
            f"    {words.ms(row['ms']):>9} {words.percent(row['share']):>5}  ",
            f"{row.get('label', row['name'])[:56]:<56} ", (f"{row['bound']}", "dim"),
        )  # fmt: skip


def _arithmetic(profile: Mapping[str, Any]) -> Iterator[Line]:
    """Operations of a unit and of a prefill, and the share of the device's peak that they take."""
    found = profile.get("arithmetic") or {}
    missing = f"; MFU not measured: {found['mfu_missing']}" if found.get("mfu_missing") else ""
    for name, what in (("unit", found.get("of")), ("prefill", "prefill")):
        part = found.get(name)
        if not part:
            continue
        kinds = ", ".join(f"{kind} {words.percent(share)}" for kind, share in words.shares(part["kinds"])[:3])
        text = f"  {words.flops(part['flops'], part['at_least'])} a {what} ({kinds})"
        share, busy = found["mfu"][name], found["mfu"][f"{name}_busy"]
        if share is None:
            yield line(text + missing)
            missing = ""  # once is enough
            continue
        least = "at least " if part["at_least"] else ""
        inside = f", {words.percent(busy)} while the device works" if busy is not None else ""
        yield line(text, ", MFU ", (f"{least}{words.percent(share)}", "bold"), " of the peak", inside)


def _top(findings: Sequence[Finding], profile: Mapping[str, Any]) -> Iterator[Line]:
    counted = [f for f in findings if verdict_of(f) is Verdict.CONFIRMED]
    for finding in counted[:_TOP]:
        evidence = finding.evidence
        saving = evidence.predicted_saving if evidence is not None else None
        if saving is None:
            worth = "no saving is printed"
        elif saving.low_pct > 0:
            worth = f"saves {saving.pct:.1f} % [{saving.low_pct:.1f}, {saving.high_pct:.1f}]"
        else:
            worth = f"saves at most {saving.high_pct:.1f} %"
        place = f" {finding.path}:{finding.span.line}  "
        yield line((f"{finding.rank:>3} ", "dim"), (finding.rule, "bold"), place, (worth, "bold"))
    if len(counted) > _TOP:
        yield line(f"    and {len(counted) - _TOP} more that are confirmed")
    joint = profile.get("joint_saving")
    if joint:
        yield line(
            "  all of them together: ", (f"{words.ms(joint['ms'])} ({joint['pct']:.0f} %)", "bold"), ", by one replay"
        )
