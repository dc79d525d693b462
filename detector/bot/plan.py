"""What to do about a change: from its findings and its comments to drafts, edits and the summary. Nothing is sent.

The same findings and comments always give the same plan, and carrying a plan out makes the next one empty. So a run
that was killed half-way is completed by the next one.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from awp_lint.detector.bot import words
from awp_lint.detector.bot.compare import Comparison
from awp_lint.detector.bot.host import Change, Draft, Host, Note, Place
from awp_lint.detector.bot.inert import code, is_plain, prose
from awp_lint.detector.finding import Finding
from awp_lint.detector.project.source import Source
from awp_lint.detector.reporting.report import verdict_of
from awp_lint.patches.plan import plan_file, with_diff

_COMMAND = re.compile(r"^[ \t]*/awp[ \t]+ignore[ \t]+(AWP\d{3})\b[ \t:,-]*(.*)$", re.IGNORECASE | re.MULTILINE)
_CRLF = (
    "No button to apply it: the file's lines end in CR LF, and a suggestion that a host applies may leave it with line "
    "ends of both kinds. `awp-lint --fix` keeps them."
)
_MAX_SUGGESTION = 40  # lines; longer rewrites are read as a diff


@dataclass(frozen=True, slots=True)
class Ignore:
    """A command that is followed: a rule in the whole change, or only in one thread's findings."""

    rule: str
    thread: words.Marker | None
    author: str
    reason: str

    def speaks_of(self, finding: Finding) -> bool:
        """Whether a finding is meant."""
        if self.rule not in (finding.rule, *finding.also):
            return False
        return self.thread is None or finding.id in self.thread.ids or _code(finding) == _told_code(self.thread)


@dataclass(frozen=True, slots=True)
class Plan:
    """``edits`` are pairs of an own note and its new text; ``close`` and ``reopen`` are threads by an own note."""

    drafts: tuple[Draft, ...]
    edits: tuple[tuple[Note, str], ...]
    deletes: tuple[Note, ...]
    close: tuple[Note, ...]
    reopen: tuple[Note, ...]
    told: words.Told
    counted: tuple[Finding, ...]  # what may fail the check
    shown: tuple[Finding, ...]  # what the check annotates
    summaries: tuple[Note, ...]  # own summary comments, oldest first


@dataclass(slots=True)
class _Thread:
    note: Note
    marker: words.Marker


@dataclass(slots=True)
class _Work:
    drafts: list[Draft] = field(default_factory=list)
    edits: dict[str, tuple[Note, str]] = field(default_factory=dict)
    deletes: list[Note] = field(default_factory=list)
    close: list[Note] = field(default_factory=list)
    reopen: list[Note] = field(default_factory=list)


def commands(notes: Sequence[Note], may_write: Callable[[str], bool]) -> tuple[list[Ignore], list[str]]:
    """The ignore commands that are followed, and a line on those that are not."""
    roots = {note.id: words.marker_of(note.body) for note in notes if note.own and note.inline}
    followed: list[Ignore] = []
    refused: list[str] = []
    allowed: dict[str, bool] = {}
    for note in notes:
        if note.own:
            continue
        for found in _COMMAND.finditer(note.body[:20_000]):
            rule, reason = found.group(1).upper(), found.group(2).strip()
            if not reason:
                refused.append(f"`/awp ignore {rule}` was not followed: it needs a reason")
                continue
            if note.author not in allowed:
                allowed[note.author] = may_write(note.author)
            if not allowed[note.author]:
                refused.append(f"`/awp ignore {rule}` was not followed: it takes write access to this repository")
                continue
            marker = roots.get(note.root)
            followed.append(Ignore(rule, marker, note.author, reason))
    return followed, list(dict.fromkeys(refused))


def make_plan(
    host: Host, change: Change, comparison: Comparison, notes: Sequence[Note], most: int, trusted: bool
) -> Plan:
    """The plan for a change. ``most`` is how many open comments it may have; ``trusted`` whether prices are ours."""
    return _Planner(host, change, comparison, notes, most, trusted).plan()


class _Planner:
    def __init__(
        self, host: Host, change: Change, comparison: Comparison, notes: Sequence[Note], most: int, trusted: bool
    ) -> None:
        self.host = host
        self.change = change
        self.comparison = comparison
        self.notes = notes
        self.most = most
        self.trusted = trusted
        self.work = _Work()
        self.suggested: list[tuple[str, int, int]] = []  # lines that suggestions replace already
        self.ignores, self.refused = commands(notes, host.may_write)

    def plan(self) -> Plan:
        counted, ignored, harmless = [], [], []
        reasons: dict[str, Ignore] = {}
        for finding in self.comparison.new:
            why = self._ignored(finding)
            if why is not None:
                ignored.append(finding)
                reasons[finding.id] = why
            elif not verdict_of(finding).counts:
                harmless.append(finding)
            else:
                counted.append(finding)
        threads = self._threads()
        open_now, fixed = self._follow(threads, counted, reasons, harmless)
        told_of = {name for thread in threads for name in thread.marker.ids}
        groups = {_told_code(thread.marker) for thread in open_now}
        on_lines, elsewhere = [], []
        room = self.most - len(open_now)
        for copies in _folded(counted):
            here = [f for f in copies if self._place(f) is not None]
            elsewhere += [f for f in copies if not self._written(f) and f.id not in told_of]
            on_lines += [f for f in copies if self._written(f) or f.id in told_of]
            first = here[0] if here else None
            if first is None or any(f.id in told_of for f in copies) or _code(first) in groups:
                continue
            if room > 0:
                room -= 1
                self.work.drafts.append(self._draft(here, copies))
        told = words.Told(
            head=self.change.head,
            merge_base=self.comparison.merge_base,
            on_lines=[self._row(f) for f in on_lines],
            elsewhere=[self._row(f) for f in elsewhere],
            harmless=[self._row(f) for f in harmless],
            ignored=[self._row(f, _who(reasons[f.id])) for f in ignored],
            fixed=fixed,
            silenced=len(self.comparison.silenced),
            notes=[*self.refused, *(f"{p.path}: {p.message}" for p in self.comparison.problems[:10])],
        )
        return Plan(
            drafts=tuple(self.work.drafts),
            edits=tuple(self.work.edits.values()),
            deletes=tuple(self.work.deletes),
            close=tuple(self.work.close),
            reopen=tuple(self.work.reopen),
            told=told,
            counted=tuple(counted),
            shown=(*counted, *harmless),
            summaries=tuple(n for n in self.notes if n.own and n.body.startswith(words.SUMMARY)),
        )

    def _ignored(self, finding: Finding) -> Ignore | None:
        return next((ignore for ignore in self.ignores if ignore.speaks_of(finding)), None)

    # comments that are there already

    def _threads(self) -> list[_Thread]:
        """Our comments, one a finding: what an earlier run said twice is taken back."""
        threads: list[_Thread] = []
        seen: set[str] = set()
        for note in self.notes:
            marker = words.marker_of(note.body) if note.own and note.inline else None
            if marker is None:
                continue
            if seen & set(marker.ids) and not note.answers:
                self.work.deletes.append(note)
                continue
            seen.update(marker.ids)
            threads.append(_Thread(note, marker))
        return threads

    def _follow(
        self,
        threads: Sequence[_Thread],
        counted: Sequence[Finding],
        reasons: dict[str, Ignore],
        harmless: Sequence[Finding],
    ) -> tuple[list[_Thread], int]:
        """Bring each comment to what is true now; those that are open, and how many are fixed."""
        by_id = {finding.id: finding for finding in (*counted, *harmless)}
        told = {name for thread in threads for name in thread.marker.ids}
        # Code that the author moved to another file or class is another finding, and the same one to a reader.
        by_code = {_code(finding): finding for finding in by_id.values() if finding.id not in told}
        ignored_code = {_code(f): reasons[f.id] for f in self.comparison.new if f.id in reasons}
        silenced = {finding.id for finding in self.comparison.silenced}
        open_now: list[_Thread] = []
        fixed = 0
        for thread in threads:
            alive = [by_id[name] for name in thread.marker.ids if name in by_id]
            if not alive and thread.marker.state == "open" and _told_code(thread.marker) in by_code:
                alive = [by_code[_told_code(thread.marker)]]
            ignored = next((reasons[name] for name in thread.marker.ids if name in reasons), None)
            ignored = ignored or ignored_code.get(_told_code(thread.marker))
            if alive:
                open_now.append(thread)
                if thread.marker.state != "open":
                    self._edit(thread, self._body(alive, alive))
                    self.work.reopen.append(thread.note)
                else:
                    self._edit(thread, words.repriced(thread.note.body, alive[0], self.trusted))
            elif ignored is not None:
                self._close(thread, "ignored", _who(ignored))
            elif silenced & set(thread.marker.ids):
                self._close(thread, "ignored", "silenced by a comment in the code")
            else:
                fixed += 1
                self._close(thread, "fixed", f"not found at {self.change.head[:12]}")
        return open_now, fixed

    def _edit(self, thread: _Thread, body: str) -> None:
        if body != thread.note.body:
            self.work.edits[thread.note.id] = (thread.note, body)

    def _close(self, thread: _Thread, state: str, why: str) -> None:
        if thread.marker.state == state:
            return  # said once; the commit it was said of need not be the newest
        self._edit(thread, words.closed(thread.note.body, state, why))
        self.work.close.append(thread.note)

    # new comments

    def _written(self, finding: Finding) -> bool:
        """Whether the change wrote a finding's lines; a notebook's are its cells', so it counts as a whole."""
        file = self.comparison.changed.get(finding.path)
        span = finding.span
        return file is not None and (finding.cell is not None or file.touches(span.line, span.end_line))

    def _place(self, finding: Finding) -> Place | None:
        """Where a comment about a finding can stand: on lines that the change wrote, inside one hunk."""
        file = self.comparison.changed.get(finding.path)
        if file is None or finding.cell is not None or not is_plain(finding.path):
            return None
        first, last = finding.span.line, finding.span.end_line
        written = [(max(low, first), min(high, last)) for low, high in file.added if low <= last and high >= first]
        if not written:
            return None
        hunk = file.hunk_around(first, last)
        if hunk is None:  # the statement reaches beyond what the diff shows
            first, last = written[0]
        return Place(file.path, file.old_path, first, last, written[-1][1] if hunk else last)

    def _draft(self, here: Sequence[Finding], copies: Sequence[Finding]) -> Draft:
        place = self._place(here[0])
        assert place is not None
        ordered = [here[0], *(f for f in copies if f is not here[0])]
        suggested = self._suggested(here[0], place)
        if suggested is not None:
            place, text = suggested
            return Draft(
                here[0].id, place, self._body(ordered, copies, words.Suggested(self.host.suggestion(place), text))
            )
        return Draft(here[0].id, place, self._body(ordered, copies))

    def _body(
        self, ordered: Sequence[Finding], copies: Sequence[Finding], suggested: words.Suggested | None = None
    ) -> str:
        first = self._with_diff(ordered[0])
        others = [self._where(f) for f in copies if f is not ordered[0]]
        remark = "" if suggested is not None else self._why_no_button(first)
        return words.comment([first, *ordered[1:]], suggested, others, self.trusted, self.host.body_limit, remark)

    def _why_no_button(self, finding: Finding) -> str:
        if finding.fix is None or not finding.fix.edits:
            return ""
        try:
            return _CRLF if "\r" in self.comparison.read(finding.path).text else ""
        except (ValueError, OSError):
            return ""

    def _with_diff(self, finding: Finding) -> Finding:
        try:
            return with_diff(finding, self.comparison.read(finding.path))
        except (ValueError, SyntaxError, OSError):
            return finding

    def _suggested(self, finding: Finding, place: Place) -> tuple[Place, str] | None:
        """The place and the new lines, where a rewrite is one block of lines that the diff shows."""
        fix = finding.fix
        file = self.comparison.changed[finding.path]
        if fix is None or not fix.edits:
            return None
        try:
            source = self.comparison.read(finding.path)
            block = _block(source, plan_file(source, [finding]).after)
        except (ValueError, SyntaxError, OSError):
            return None
        if block is None:
            return None
        first, last, text = block
        hunk = file.hunk_around(min(first, place.first), max(last, place.last))
        written = [min(high, last) for low, high in file.added if low <= last and high >= first]
        if hunk is None or not written or last - first >= _MAX_SUGGESTION or text.count("\n") > _MAX_SUGGESTION:
            return None
        if not is_plain(text) or any(p == place.path and a <= last and first <= b for p, a, b in self.suggested):
            return None  # of two suggestions for a line only one could be applied
        self.suggested.append((place.path, first, last))
        return replace(place, first=first, last=last, added=written[-1]), text

    def _where(self, finding: Finding) -> str:
        return words.place(finding, self.host.link(self.change, finding.path, finding.span.line))

    def _row(self, finding: Finding, remark: str = "") -> words.Row:
        return words.Row(finding, self._where(finding), remark)


def _folded(findings: Sequence[Finding]) -> list[list[Finding]]:
    """Copies of the same code together, in order of the best of them."""
    groups: dict[object, list[Finding]] = {}
    for finding in findings:
        groups.setdefault((finding.rule, finding.group) if finding.group else finding.id, []).append(finding)
    return list(groups.values())


def _code(finding: Finding) -> tuple[str, str]:
    return finding.rule, finding.group or f"id {finding.id}"


def _told_code(marker: words.Marker) -> tuple[str, str]:
    return marker.rule, marker.group


def _who(ignore: Ignore) -> str:
    return f"{code(ignore.author, 60)} says {prose(ignore.reason, 300)}"


def _block(source: Source, after: str) -> tuple[int, int, str] | None:
    """First and last line that a rewrite changes and what stands there then; None where it is more than one block.

    Files with other line ends than ``\\n`` get none: hosts write the new lines with line ends of their own choice.
    """
    if "\r" in source.text or "\f" in source.text:
        return None
    before, new = source.text.split("\n"), after.split("\n")
    changed = [
        op for op in difflib.SequenceMatcher(None, before, new, autojunk=False).get_opcodes() if op[0] != "equal"
    ]
    if not changed:
        return None
    (_, low, _, new_low, _), (_, _, high, _, new_high) = changed[0], changed[-1]
    between = sum(op[2] - op[1] for op in changed)
    if high - low - between > 3:
        return None  # far apart, such as an import at the top
    if low == high:  # a pure insertion stands with the line above it
        if low == 0:
            return None
        low, new_low = low - 1, new_low - 1
    if new_low == new_high or high >= len(before):
        return None  # lines only vanish, or the file's last line has no end: no host agrees on what that means
    return low + 1, high, "\n".join(new[new_low:new_high])
