"""What the bot says: comments, their strike-out, the summary, annotations. All text from outside goes through
:mod:`~awp_lint.detector.bot.inert`.

A comment's first line is a marker that readers do not see and the next run reads: whose findings it is about, and
whether it is open, fixed or ignored. Markers have lines of their own: Markdown passes a line that begins with one on
as HTML. The state of a change is in its comments and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from awp_lint.detector.bot.host import CheckResult
from awp_lint.detector.bot.inert import clip, code, element, fence, one_line, prose
from awp_lint.detector.finding import Evidence, Finding, Safety, Verdict
from awp_lint.detector.reporting.report import verdict_of

SUMMARY = "<!-- awp-lint/1 summary -->"
_MARKER = re.compile(
    r"<!-- awp-lint/1 finding ids=([0-9a-zA-Z,._-]+) group=([0-9a-zA-Z._-]+) rule=(AWP\d{3})"
    r" state=(open|fixed|ignored) -->"
)
_SAID = re.compile(r"<!-- said -->\n(.*)")
_PRICE = re.compile(r"<!-- price -->.*?<!-- /price -->", re.DOTALL)
_ID = re.compile(r"[0-9a-zA-Z._-]+")
_MAX_DIFF = 12_000
_MAX_ROWS = 50
_FOLDED = "<summary>{title}</summary>"


@dataclass(frozen=True, slots=True)
class Marker:
    """What a comment of ours is about."""

    ids: tuple[str, ...]
    group: str
    rule: str
    state: str

    def __str__(self) -> str:
        words = f"ids={','.join(self.ids)} group={self.group} rule={self.rule} state={self.state}"
        return f"<!-- awp-lint/1 finding {words} -->"


def marker_of(body: str) -> Marker | None:
    """The marker at the beginning of a comment of ours."""
    found = _MARKER.match(body)
    if found is None:
        return None
    return Marker(tuple(found.group(1).split(",")), found.group(2), found.group(3), found.group(4))


def marker_for(findings: Sequence[Finding]) -> Marker:
    """The marker of a comment about some copies of the same code."""
    first = findings[0]
    ids = tuple(f.id for f in findings if _ID.fullmatch(f.id))
    return Marker(ids, first.group if first.group and _ID.fullmatch(first.group) else "-", first.rule, "open")


# prices --------------------------------------------------------------------------------------------------------------


def price(evidence: Evidence | None) -> str:
    """What a run says, in one phrase; "" without a run."""
    if evidence is None:
        return ""
    saving = evidence.predicted_saving
    verdict = evidence.verdict.value.replace("_", " ")
    if evidence.verdict is not Verdict.CONFIRMED or saving is None:
        return verdict
    if saving.low_pct <= 0:
        return f"{verdict}: costs at most {saving.high_pct:.1f} % of a {evidence.unit}"
    return f"{verdict}: costs {saving.pct:.1f} % of a {evidence.unit} [{saving.low_pct:.1f}, {saving.high_pct:.1f}]"


def _price_block(finding: Finding, trusted: bool) -> str:
    evidence = finding.evidence
    if evidence is None:
        return "<!-- price -->\n<!-- /price -->"
    figures = [
        f"{value:.4g} {unit}"
        for value, unit in (
            (evidence.blocked_ms, "ms blocked"),
            (evidence.idle_ms, "ms of GPU idle caused"),
            (evidence.launches, "launches"),
        )
        if value
    ]
    words = f"**{prose(price(evidence))}**"
    if figures:
        words += f" · {', '.join(figures)} a {evidence.unit}"
    if evidence.reason:
        words += f" · {prose(evidence.reason, 300)}"
    if not trusted:
        words += " · figures from the change's own run, not checked"
    return f"<!-- price -->\n{words}\n<!-- /price -->"


def repriced(body: str, finding: Finding, trusted: bool) -> str:
    """The comment with what the newest run says; without evidence what an earlier one said stays."""
    if finding.evidence is None:
        return body
    return _PRICE.sub(lambda _: _price_block(finding, trusted), body, count=1)


# comments ------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Suggested:
    """A rewrite that fits the lines of a comment: the word behind the fence, and the new lines."""

    kind: str
    text: str


def comment(
    findings: Sequence[Finding],
    suggested: Suggested | None,
    places: Sequence[str],
    trusted: bool,
    limit: int,
    remark: str = "",
) -> str:
    """A review comment about a finding and the copies of its code that this change adds too.

    ``places`` are the copies' places, and ``remark`` is a word about the rewrite, both ready as Markdown.
    """
    first = findings[0]
    fix = first.fix
    rows = [
        str(marker_for(findings)),
        f"**{first.rule} {prose(first.name)}** · {first.confidence.value} confidence · runs {prose(first.frequency)}",
        "",
        _price_block(first, trusted),
        "<!-- said -->",
        prose(first.message),
        "",
        *(f"- {prose(reason, 400)}" for reason in first.why),
    ]
    if places:
        more = f" and {len(places) - 5} more" if len(places) > 5 else ""
        rows += ["", f"The same code: {', '.join(places[:5])}{more}."]
    if fix is not None:
        if suggested is not None:
            rows += ["", f"{_safety(first)}{prose(fix.title)}", "", fence(suggested.text, suggested.kind)]
        elif fix.diff and len(fix.diff) <= _MAX_DIFF:
            title = _FOLDED.format(title=element(fix.title))
            rows += ["", f"{_safety(first)}", "<details>", title, "", fence(fix.diff, "diff"), "", "</details>"]
        elif fix.diff:
            rows += ["", f"{_safety(first)}{prose(fix.title)} (long; `awp-lint --diff` prints it)"]
        rows += ["", remark] if remark else []
        rows += ["", *(f"- only if {prose(condition, 300)}" for condition in fix.requires)]
    rows += [
        "",
        f"<sub>`awp-lint --explain {first.rule}` says more. "
        f"Not worth it here? Answer `/awp ignore {first.rule} reason`.</sub>",
    ]
    return clip("\n".join(rows), limit, "*Cut: too long for a comment.*")


def _safety(finding: Finding) -> str:
    fix = finding.fix
    assert fix is not None
    if fix.safety is Safety.SAFE:
        return "Safe rewrite: "
    effects = ", ".join(effect.value for effect in fix.effects)
    return f"Rewrite to be checked{f' ({effects})' if effects else ''}: "


def closed(body: str, state: str, why: str) -> str:
    """Our comment struck out: ``state`` is fixed or ignored, ``why`` is ready as Markdown."""
    marker = marker_of(body)
    assert marker is not None
    said = _SAID.search(body)
    message = said.group(1) if said else ""
    rows = [
        str(replace(marker, state=state)),
        f"~~**{marker.rule}**~~ {state.capitalize()}{f': {why}' if why else ''}.",
    ]
    if message:
        rows += ["", "<!-- said -->", message if message.startswith("~~") else f"~~{message}~~"]
    return "\n".join(rows)


# the summary ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Row:
    """A finding in the summary: ``where`` is ready as Markdown."""

    finding: Finding
    where: str
    remark: str = ""


@dataclass(frozen=True, slots=True)
class Told:
    """Everything that a summary tells."""

    head: str
    merge_base: str
    on_lines: Sequence[Row] = ()
    elsewhere: Sequence[Row] = ()
    harmless: Sequence[Row] = ()
    ignored: Sequence[Row] = ()
    fixed: int = 0
    silenced: int = 0
    notes: Sequence[str] = ()  # plain text

    @property
    def news(self) -> int:
        """Findings that ask for something."""
        return len(self.on_lines) + len(self.elsewhere)

    @property
    def title(self) -> str:
        """One line."""
        parts = [f"{self.news} new finding{'' if self.news == 1 else 's'}"]
        parts += [f"{self.fixed} fixed"] if self.fixed else []
        parts += [f"{len(self.ignored)} ignored"] if self.ignored else []
        parts += [f"{len(self.harmless)} that cost nothing here"] if self.harmless else []
        return ", ".join(parts)


def summary(told: Told, limit: int) -> str:
    """The summary comment."""
    rows = [SUMMARY, f"### awp-lint: {told.title}", ""]
    if told.on_lines:
        rows += _table(told.on_lines)
    if told.elsewhere:
        rows += [
            "",
            f"**On lines that this change leaves alone, but makes run, or run more often ({len(told.elsewhere)})**",
            "",
        ]
        rows += _table(told.elsewhere)
    for title, group in (("Ignored", told.ignored), ("Measured, and costs nothing here", told.harmless)):
        if group:
            rows += [
                "",
                "<details>",
                _FOLDED.format(title=f"{title} ({len(group)})"),
                "",
                *_table(group),
                "",
                "</details>",
            ]
    if told.silenced:
        rows += ["", f"{told.silenced} more silenced by comments in the code that this change adds."]
    rows += ["", *(f"- {prose(note, 400)}" for note in told.notes)] if told.notes else []
    rows += [
        "",
        f"<sub>{told.head[:12]} against {told.merge_base[:12]} · read, not run · this comment is kept up to date</sub>",
    ]
    return clip("\n".join(rows), limit, "*Cut: too long for a comment.*")


def _table(group: Sequence[Row]) -> list[str]:
    rows = ["| rule | where | what | |", "|---|---|---|---|"]
    for row in group[:_MAX_ROWS]:
        finding = row.finding
        remark = row.remark or prose(price(finding.evidence)) or f"{finding.confidence.value} confidence"
        rows.append(f"| {finding.rule} | {row.where} | {prose(finding.message, 300)} | {remark} |")
    if len(group) > _MAX_ROWS:
        rows.append(f"| | | … and {len(group) - _MAX_ROWS} more | |")
    return rows


def place(finding: Finding, link: str) -> str:
    """Path and line as Markdown; a link where there is an address."""
    shown = code(f"{finding.path}:{finding.span.line}", 160)
    return f"[{shown}]({link})" if link else shown


# the check -----------------------------------------------------------------------------------------------------------


def check(told: Told, shown: Sequence[Finding], failed: bool, limit: int) -> CheckResult:
    """The commit's check: one annotation a finding, in rank order."""
    annotations = tuple(_annotation(f) for f in shown)
    text = clip(summary(replace(told, notes=()), limit).removeprefix(SUMMARY).lstrip("\n"), limit, "*Cut.*")
    digest = hashlib.sha256(json.dumps([text, failed, annotations], sort_keys=True).encode()).hexdigest()[:32]
    conclusion = "failure" if failed else "neutral" if told.news else "success"
    return CheckResult(conclusion, f"{told.title}", text, digest, annotations)


def _annotation(finding: Finding) -> dict[str, Any]:
    span = finding.span
    words = [finding.message, *finding.why]
    if finding.evidence is not None:
        words.insert(0, price(finding.evidence))
    row: dict[str, Any] = {
        "path": finding.path,
        "start_line": span.line,
        "end_line": span.end_line,
        "annotation_level": "warning" if verdict_of(finding).counts else "notice",
        "title": one_line(f"{finding.rule} {finding.name}", 255),
        "message": "\n".join(one_line(word, 1000) for word in words),
    }
    if span.line == span.end_line:
        row["start_column"], row["end_column"] = span.column, max(span.column, span.end_column - 1)
    return row
