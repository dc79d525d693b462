"""One run of the bot: compare, plan, carry out, exit code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from awp_lint.detector.bot import words
from awp_lint.detector.bot.compare import compare
from awp_lint.detector.bot.host import Change, Draft, Host, Note
from awp_lint.detector.bot.plan import Plan, make_plan
from awp_lint.detector.finding import Confidence, Evidence, Finding, Verdict

LEVELS = ("never", "low", "medium", "high", "confirmed")


@dataclass(frozen=True, slots=True)
class Wish:
    """What the user asks of a run. ``evidence`` are prices by finding id."""

    folder: str = "."
    paths: tuple[str, ...] = (".",)
    baseline: str | None = None
    evidence: dict[str, Evidence] | None = None
    trust_evidence: bool = True
    most: int = 10
    fail_on: str = "never"
    check: bool = True
    dry: bool = False


@dataclass(frozen=True, slots=True)
class Done:
    """What a run did. ``summary`` is the summary's text, whether or not it had to be sent."""

    failed: bool
    summary: str
    lines: tuple[str, ...]


def run(host: Host, wish: Wish) -> Done:
    """Bring the comments of a change up to date. Raises :class:`~awp_lint.detector.bot.host.BotError`."""
    change = host.change()
    trusted = wish.trust_evidence and not change.fork
    prices = _believed(wish.evidence or {}, trusted)
    with compare(wish.folder, change, wish.paths, wish.baseline, prices) as comparison:
        notes = host.notes()
        plan = make_plan(host, change, comparison, notes, wish.most, trusted)
        failed = fails(plan.counted, wish.fail_on)
        if wish.dry:
            text = words.summary(plan.told, host.body_limit)
            return Done(failed, text, (plan.told.title, *_would(plan)))
        told, lines = _carry_out(host, change, plan)
        if wish.check:
            result = words.check(told, plan.shown, failed, host.body_limit)
            lines += [why for why in (host.check(change, result),) if why]
        return Done(failed, words.summary(told, host.body_limit), (told.title, *lines))


def _believed(prices: dict[str, Evidence], trusted: bool) -> dict[str, Evidence]:
    """Prices as far as they are believed: a change's own job may add a cost, never take a finding away."""
    if trusted:
        return prices
    return {name: evidence for name, evidence in prices.items() if evidence.verdict is Verdict.CONFIRMED}


def fails(findings: Sequence[Finding], level: str) -> bool:
    """Whether any finding reaches the level."""
    if level == "never":
        return False
    if level == "confirmed":
        return any(f.evidence is not None and f.evidence.verdict is Verdict.CONFIRMED for f in findings)
    return any(f.confidence.order >= Confidence(level).order for f in findings)


def _would(plan: Plan) -> list[str]:
    rows = [f"would comment at {d.place.path}:{d.place.first}" for d in plan.drafts]
    rows += [f"would edit comment {note.id}" for note, _ in plan.edits]
    rows += [f"would delete comment {note.id}, a repetition" for note in plan.deletes]
    return rows


def _carry_out(host: Host, change: Change, plan: Plan) -> tuple[words.Told, list[str]]:
    """Carry a plan out, old comments first: a run that is killed leaves nothing that the next one cannot complete."""
    lines: list[str] = []
    for note in (*plan.deletes, *plan.summaries[1:]):
        host.delete(note)
    for note, body in plan.edits:
        host.edit(note, body)
    for group, resolved in ((plan.close, True), (plan.reopen, False)):
        if group:
            lines += [why for why in (host.resolve(group, resolved),) if why]
    refused: list[Draft] = []
    if plan.drafts:
        count = len(plan.drafts)
        said = f"awp-lint: {count} finding{'' if count == 1 else 's'} on the lines that this change writes."
        refused = host.review(change, said, plan.drafts)
    told = plan.told
    if refused:
        remark = "the host takes no comment here"
        keys = {draft.key for draft in refused}
        rows = [replace(row, remark=remark) if row.finding.id in keys else row for row in told.on_lines]
        told = replace(told, on_lines=rows)
    _summarise(host, plan.summaries[:1], told)
    lines += [f"{len(plan.drafts) - len(refused)} commented, {len(plan.edits)} edited, {len(refused)} refused"]
    return told, lines


def _summarise(host: Host, present: Sequence[Note], told: words.Told) -> None:
    body = words.summary(told, host.body_limit)
    if present:
        if present[0].body.rstrip() != body.rstrip():
            host.edit(present[0], body)
    elif told.news or told.ignored or told.fixed or told.harmless:
        host.comment(body)
