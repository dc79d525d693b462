"""The report for a person: ranked, one block a finding, the diff where there is one."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from awp_lint.detector.finding import Evidence, Finding, Safety, Verdict, Verification, VerificationVerdict
from awp_lint.detector.reporting.report import Report, verdict_of
from awp_lint.detector.reporting.story import story
from awp_lint.detector.reporting.terminal import Line, line
from awp_lint.detector.verification.words import words as proof_words

_VERDICT_STYLE = {
    Verdict.CONFIRMED: "bold red",
    Verdict.STATIC_ONLY: "yellow",
    Verdict.PRESENT_BUT_FREE: "green",
    Verdict.REFUTED: "green",
    Verdict.REACHED_OUTSIDE_WINDOWS: "cyan",
    Verdict.NOT_REACHED: "dim",
    Verdict.UNATTRIBUTABLE: "magenta",
}
_PROOF_STYLE = {
    VerificationVerdict.VERIFIED: "bold green",
    VerificationVerdict.NO_EFFECT: "cyan",
    VerificationVerdict.REGRESSION: "bold red",
    VerificationVerdict.NOT_RESOLVED: "yellow",
    VerificationVerdict.NOT_EXERCISED: "dim",
    VerificationVerdict.DIFFERS: "bold red",
    VerificationVerdict.DOES_NOT_RUN: "bold red",
}
_DIFF_STYLE = {"+": "green", "-": "red", "@": "cyan"}
_COLLAPSED = (Verdict.PRESENT_BUT_FREE, Verdict.REFUTED, Verdict.NOT_REACHED, Verdict.REACHED_OUTSIDE_WINDOWS)


def render(report: Report, verbose: bool = False) -> list[Line]:
    """All lines of the report."""
    return list(_lines(report, verbose))


def _lines(report: Report, verbose: bool) -> Iterator[Line]:
    if report.profile is not None:
        yield from _profile_lines(report.profile)
    shown: dict[str, int] = {}
    apart = False
    for finding in report.findings:
        if finding.origin == "dependency" and not apart:
            apart = True
            yield from _apart(report)
        if finding.group is not None:
            shown[finding.group] = shown.get(finding.group, 0) + 1
            if shown[finding.group] > 1:
                continue
        siblings = [f for f in report.findings if f.group is not None and f.group == finding.group and f is not finding]
        counted = finding.origin == "project" or verdict_of(finding) is Verdict.CONFIRMED
        brief = (verdict_of(finding) in _COLLAPSED or not counted) and not verbose
        yield from _brief(finding) if brief else _block(finding, siblings)
    told = story(report)
    if told:  # at the end, where a terminal shows it
        yield from told
        yield line()
    yield from _summary(report)


def _apart(report: Report) -> Iterator[Line]:
    count = sum(finding.origin == "dependency" for finding in report.findings)
    what = f"{count} finding{'s' if count != 1 else ''} in libraries that run hot"
    how = "they count" if report.include_dependencies else "they count for nothing and get no diff (--include-deps)"
    yield line((what, "bold"), f": {how}")
    yield line()


def _headline(finding: Finding) -> Line:
    place = f"{finding.path}:{finding.span.line}"
    if finding.cell is not None:
        place = f"{finding.path} cell {finding.cell}, line {finding.span.line}"
    return line(
        (f"{finding.rank:>3} ", "dim"),
        (f"{finding.rule} ", "bold"),
        (finding.name, "bold"),
        ("  " + place, "bold cyan"),
        (f"  in {finding.function}", "dim"),
    )


def _brief(finding: Finding) -> Iterator[Line]:
    assert finding.evidence is not None
    yield _headline(finding)
    yield line("      ", *_verdict_words(finding.evidence), (f": {finding.evidence.reason}", "dim"))
    yield from _verification_lines(finding.verification)
    yield line()


def _block(finding: Finding, siblings: list[Finding]) -> Iterator[Line]:
    yield _headline(finding)
    if finding.evidence is not None:
        yield from _evidence_lines(finding.evidence)
    else:
        yield line(
            "      ",
            (f"{finding.confidence.value} confidence", "yellow"),
            (f" · runs {finding.frequency} · {finding.root_cause.value}", ""),
        )
    yield line("      ", finding.message)
    yield from _verification_lines(finding.verification)
    for number, reason in enumerate(finding.why):
        yield line(("      why  " if number == 0 else "           "), (reason, "dim"))
    for other in finding.related:
        yield line("      see  ", (f"{other.path}:{other.line} {other.message}", "dim"))
    if siblings:
        places = ", ".join(f"{f.path}:{f.span.line}" for f in siblings[:4])
        more = f" and {len(siblings) - 4} more" if len(siblings) > 4 else ""
        yield line("      also ", (f"the same code at {places}{more}", "dim"))
    yield from _fix_lines(finding)
    yield line()


def evidence_lines(finding: Finding) -> list[Line]:
    """What was measured and proven of a finding; nothing without a run."""
    measured = () if finding.evidence is None else _evidence_lines(finding.evidence)
    return [*measured, *_verification_lines(finding.verification)]


def profile_lines(profile: Mapping[str, Any]) -> list[Line]:
    """What a run says of the program as a whole."""
    return list(_profile_lines(profile))


def _verification_lines(found: Verification | None) -> Iterator[Line]:
    if found is None:
        return
    figures = "" if found.saving_pct is None else f" · {found.pairs} rounds"
    yield line("      ", ("patch ", ""), (proof_words(found), _PROOF_STYLE[found.verdict]), figures)
    told = (found.equality, *found.notes) if found.saving_pct is not None else found.notes
    for text in filter(None, told):
        yield line("           ", (text, "dim"))


def _fix_lines(finding: Finding) -> Iterator[Line]:
    fix = finding.fix
    if fix is None:
        return
    if fix.safety is Safety.MANUAL or not fix.diff:
        yield line("      do   ", fix.title)
    else:
        effects = f" ({', '.join(e.value for e in fix.effects)})" if fix.effects else ""
        yield line("      fix  ", (f"[{fix.safety.value}{effects}] ", "bold"), fix.title)
    for condition in fix.requires:
        yield line("           ", (f"only if {condition}", "yellow"))
    for text in _hunks(fix.diff):
        yield line("      ", (text, _DIFF_STYLE.get(text[:1], "dim")))


def _hunks(diff: str) -> Iterator[str]:
    """A diff as it is shown beside a finding: without the names of the finding's own file, and files that it adds by
    their names alone, since a helper module is longer than all that is to be said of the finding."""
    lines = diff.splitlines()
    starts = [n for n, pair in enumerate(pairwise(lines)) if pair[0][:4] == "--- " and pair[1][:4] == "+++ "]
    own = True
    for start, end in pairwise((*starts, len(lines))):
        old, new, *hunks = lines[start:end]
        if old == "--- /dev/null":
            yield f"{new}: a new file of {len(hunks) - 1} lines (--diff shows it)"
            continue
        if not own:
            yield from (old, new)
        own = False
        yield from hunks


def _verdict_words(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    words = evidence.verdict.value.replace("_", " ")
    scope = " (host)" if evidence.scope != "device" and evidence.verdict is Verdict.CONFIRMED else ""
    return ((words + scope, _VERDICT_STYLE[evidence.verdict]),)


def _evidence_lines(evidence: Evidence) -> Iterator[Line]:
    saving = evidence.predicted_saving
    pieces: list[str | tuple[str, str]] = ["      ", *_verdict_words(evidence)]
    if saving is not None:
        if saving.low_pct > 0:
            words = f" · saves {saving.pct:.1f} % [{saving.low_pct:.1f}, {saving.high_pct:.1f}] of a {evidence.unit}"
        else:
            words = f" · saves at most {saving.high_pct:.1f} % of a {evidence.unit}"
        pieces.append((f"{words} ({saving.ms:.3f} ms)", "bold"))
    yield line(*pieces)
    figures = [f"{evidence.calls} calls, {evidence.calls_per_unit:.4g} a {evidence.unit}"]
    for value, name in (
        (evidence.host_ms, "host"),
        (evidence.blocked_ms, "blocked"),
        (evidence.gpu_ms, "GPU"),
        (evidence.idle_ms, "GPU idle caused"),
    ):
        if value is not None:
            figures.append(f"{name} {value:.3f} ms")
    if evidence.call_ms is not None and evidence.call_ms.p95 is not None:
        figures.append(f"a call {evidence.call_ms.p50:.3f} ms, p95 {evidence.call_ms.p95:.3f} ms")
    if evidence.launches is not None:
        figures.append(f"{evidence.launches:.4g} launches")
    for count, name in ((evidence.copies.h2d_bytes, "to the device"), (evidence.copies.d2h_bytes, "to the host")):
        if count:
            kind = {True: " pageable", False: " pinned", None: ""}[evidence.copies.pageable]
            figures.append(f"{_bytes(count)}{kind} {name}")
    yield line("      ", (" · ".join(figures), ""))
    yield line("      ", (evidence.reason, "dim"))
    if saving is not None and saving.assumption:
        yield line("      ", (f"assuming {saving.assumption}", "dim"))


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:.4g} GiB"


def _profile_lines(profile: Mapping[str, Any]) -> Iterator[Line]:
    figures: list[str] = []
    unit = profile.get("unit") or "run"
    for key, words in (
        ("unit_ms", f"{{:.3f}} ms a {unit}"),
        ("gpu_busy_ms", "GPU busy {:.3f} ms"),
        ("kernels", "{:.4g} kernels"),
        ("launches", "{:.4g} launches"),
        ("syncs", "{:.4g} syncs"),
        ("ttft_ms", "TTFT {:.2f} ms"),
        ("tpot_ms", "TPOT {:.2f} ms"),
    ):
        if profile.get(key) is not None:
            figures.append(words.format(profile[key]))
    for key, words in (("gap_ratio", "gap ratio {:.1%}"), ("memcpy_share", "copies {:.1%}")):
        if profile.get(key) is not None:
            figures.append(words.format(profile[key]))
    yield line(("Profile  ", "bold"), " · ".join(figures) if figures else "nothing could be measured")
    if profile.get("root_cause"):
        yield line(("Cause    ", "bold"), str(profile["root_cause"]))
    times = profile.get("percentiles") or {}
    known = [f"{name} {shown}" for name, found in times.items() if (shown := _percentiles(found))]
    if known:
        yield line(("Times    ", "bold"), " · ".join(known))
    requests = profile.get("requests")
    if requests:
        share = f"{requests['prefill_share']:.0%} of a request"
        first, decode = f"{requests['prefill_ms']:.2f} ms to the first token", f"{requests['decode_ms']:.2f} ms decode"
        yield line(("Requests ", "bold"), f"{first} ({share}), {decode} of {requests['tokens']:.4g} tokens")
    memory = profile.get("allocator")
    if memory is not None:
        yield line(("Memory   ", "bold"), memory["missing"] or _memory(memory, unit))
    census = profile.get("census")
    if census is not None:
        flagged = sum(row["flagged"] for row in census["waits"])
        told = f"{len(census['waits'])} statements wait for the device, {flagged} of them are covered by findings"
        yield line(("Census   ", "bold"), census["missing"] or told)
    overhead = profile.get("overhead") or {}
    costs = [
        words.format(overhead[key])
        for key, words in (
            ("marks_pct", "marks {:.2f} %"),
            ("trace_pct", "trace slices {:.0f} %"),
            ("tool_s", "{:.1f} s"),
        )
        if overhead.get(key) is not None
    ]
    if costs:
        yield line(("Overhead ", "bold"), " · ".join(costs))
    proof = profile.get("verification")
    if proof is not None and proof["joint"] is not None:
        joint = proof["joint"]
        saved = ""
        if joint["saving_pct"] is not None:
            saved = f" {joint['saving_pct']:+.1f} % [{joint['low_pct']:.1f}, {joint['high_pct']:.1f}]"
        verdict = joint["verdict"].replace("_", " ")
        equal = f" · {joint['equality']}" if joint["equality"] else ""
        yield line(("Together ", "bold"), f"{len(joint['findings'])} patches: {verdict}{saved}", (equal, "dim"))
    if profile.get("trusted") is False:
        yield line(("Not trusted: ", "bold yellow"), "; ".join(profile.get("reasons") or ("no reason recorded",)))
    yield line()


def _memory(memory: Mapping[str, Any], unit: str) -> str:
    told = [f"peak {_bytes(memory['peak_bytes'])} in tensors, {_bytes(memory['reserved_bytes'])} reserved"]
    if memory["weights_bytes"]:
        told.append(f"weights {_bytes(memory['weights_bytes'])}")
    if memory["allocations"] is not None:
        told.append(
            f"{memory['allocations']:.4g} allocations a {unit}, {memory['device_allocations']:.4g} of the device"
        )
    if memory["retries"]:
        told.append(f"{memory['retries']} retries for want of memory")
    return " · ".join(told)


def _percentiles(found: Mapping[str, Any] | None) -> str:
    names = ("p50", "p95", "p99")
    return " ".join(f"{name} {found[name]:.3f} ms" for name in names if found and found[name] is not None)


def _summary(report: Report) -> Iterator[Line]:
    total = len(report.findings)
    size = f"{report.files} files, {report.lines} lines, {report.seconds:.1f} s"
    if not total:
        yield line(("No findings", "bold green"), f" in {size}")
    else:
        fixable = sum(bool(f.fix and f.fix.edits) for f in report.findings)
        verdicts = ", ".join(f"{n} {name.replace('_', ' ')}" for name, n in report.by_verdict.items())
        words = f" in {size}: {verdicts}; {fixable} with a diff"
        yield line((f"{total} finding{'s' if total != 1 else ''}", "bold"), words)
    if report.suppressed:
        yield line((f"{len(report.suppressed)} suppressed in the code", "dim"))
    for note in report.notes:
        yield line((note, "dim"))


def statistics(report: Report, names: Mapping[str, str]) -> list[Line]:
    """Counts by rule, most frequent first; ``names`` maps rule ids to their names."""
    rows = sorted(report.by_rule.items(), key=lambda item: (-item[1], item[0]))
    return [line(f"{count:>6}  ", (rule, "bold"), f"  {names.get(rule, '')}") for rule, count in rows]
