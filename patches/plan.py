"""From ranked findings to per-file results: which fixes apply together, the new text, the diff.

Fixes are taken in rank order; one that touches an accepted fix is left for the next pass (``--fix`` runs passes until
nothing changes). A fix is taken whole or not at all, in however many files it has a part.
"""

from __future__ import annotations

import ast
import dataclasses
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from awp_lint.detector.finding import Edit, FileChange, Finding, Fix, Safety
from awp_lint.detector.project.source import Source
from awp_lint.patches.diff import unified_diff
from awp_lint.patches.imports import import_edits
from awp_lint.patches.splice import clashes, splice


@dataclass(frozen=True)
class FilePatch:
    """What the accepted fixes make of one file."""

    source: Source
    after: str
    applied: tuple[Finding, ...]
    postponed: tuple[Finding, ...]  # clash with a better fix
    diff: str
    created: bool = False  # the file does not exist yet


def price(finding: Finding) -> str:
    """What the finding costs, in a few words; "" when no run has priced it, or where a model wrote the patch: the
    prediction is of what the rule proposes."""
    saving = finding.evidence.predicted_saving if finding.evidence else None
    if saving is None or (finding.fix is not None and finding.fix.author):
        return ""
    if saving.low_pct <= 0:
        return f"saves at most {saving.high_pct:.1f} %"
    return f"saves {saving.pct:.1f} % [{saving.low_pct:.1f}, {saving.high_pct:.1f}]"


def hunk_label(finding: Finding) -> str:
    """The words behind a hunk's second ``@@``: id, price, title."""
    title = finding.fix.title if finding.fix else finding.name
    return " · ".join(part for part in (finding.rule, price(finding), title) if part)


def wanted(finding: Finding, unsafe: bool, only: Sequence[str]) -> bool:
    """Whether a finding's fix is to be applied under the user's options."""
    fix = finding.fix
    if fix is None or not fix.edits or finding.suppressed is not None or finding.origin != "project":
        return False
    if only and not any(finding.rule.startswith(prefix) for prefix in only):
        return False
    return fix.safety is Safety.SAFE or (unsafe and fix.safety is Safety.UNSAFE)


def _lines_of(source: Source, edits: Iterable[Edit]) -> tuple[int, int]:
    import bisect

    edits = list(edits)
    first = bisect.bisect_right(source.line_starts, min(e.start for e in edits))
    last = bisect.bisect_right(source.line_starts, max(max(e.end - 1, e.start) for e in edits))
    return first, last


def parts_of(finding: Finding) -> tuple[FileChange, ...]:
    """What a finding's fix does, file by file, the finding's own file first."""
    fix = finding.fix
    assert fix is not None
    return (FileChange(finding.path, fix.edits, fix.imports), *fix.others)


def plan_file(source: Source, findings: Sequence[Finding]) -> FilePatch:
    """Apply the fixes of ``findings`` (in rank order) to one file; their parts in other files are left out.

    Raises :class:`ValueError` when the result is not valid Python: a rule's bug that must never reach a user's file.
    """
    taken: list[_Share] = []
    accepted: list[Edit] = []
    postponed: list[Finding] = []
    for finding in findings:
        own = parts_of(finding)[0]
        if clashes(own.edits, accepted):
            postponed.append(finding)
            continue
        accepted += own.edits
        taken.append(_Share(finding, own))
    return _render(source, taken, postponed)


@dataclass(frozen=True)
class _Share:
    """What one fix does to one file."""

    finding: Finding
    change: FileChange


def _render(
    source: Source,
    shares: Sequence[_Share],
    postponed: Sequence[Finding],
    shown: bool = False,
    tree: ast.Module | None = None,
) -> FilePatch:
    """``shown``: the patch is not written. Then the definition that it changes is looked at first, since parsing whole
    files for every finding would cost a good part of a scan. ``tree`` is the source's, where it is known."""
    edits = [edit for share in shares for edit in share.change.edits]
    needed = [one for share in shares for one in share.change.imports]
    imports = import_edits(source, tree or ast.parse(source.text), needed) if needed else ()
    after = splice(source.text, (*edits, *imports))
    applied = tuple(share.finding for share in shares)
    try:
        if not (shown and _definition_parses(source, edits)):
            ast.parse(after)
    except SyntaxError as error:
        rules = ", ".join(sorted({f.rule for f in applied}))
        raise ValueError(f"{source.path}: the rewrite of {rules} is not valid Python ({error.msg})") from None
    spans = [(*_lines_of(source, s.change.edits), s.finding) for s in shares if s.change.edits]

    def label(first: int, last: int) -> str:
        return "; ".join(dict.fromkeys(hunk_label(f) for lo, hi, f in spans if lo <= last and hi >= first))

    return FilePatch(source, after, applied, tuple(postponed), unified_diff(source.path, source.text, after, label))


def _definition_parses(source: Source, edits: Sequence[Edit]) -> bool:
    """Whether the definition around the edits is valid once they are made; False also where that is unclear.

    Imports, which are lines of their own, change nothing about it."""
    if not edits:
        return False
    first, last = _lines_of(source, edits)
    text = source.line_text
    own = _indent(text(first))
    begin = first if _DEFINES.match(text(first)) else 0
    for number in range(first - 1, 0, -1) if begin == 0 and own is not None else ():
        if _DEFINES.match(text(number)) and (_indent(text(number)) or 0) < (own or 0):
            begin = number
            break
    if begin == 0:
        return False
    depth = _indent(text(begin)) or 0
    count = len(source.line_starts)
    after = next((n for n in range(last + 1, count + 1) if _ends(text(n), depth)), count + 1)
    offset = source.line_starts[begin - 1]
    end = source.line_starts[after - 1] if after <= count else len(source.text)
    moved = [Edit(edit.start - offset, edit.end - offset, edit.replacement) for edit in edits]
    try:
        ast.parse(("if 1:\n" if depth else "") + splice(source.text[offset:end], moved))
    except (SyntaxError, ValueError):
        return False
    return True


_DEFINES = re.compile(r"[ \t]*(async[ \t]+def|def|class)[ \t]")


def _indent(line: str) -> int | None:
    """The indentation of a line, None for one that is blank or a comment."""
    code = line.lstrip()
    return None if not code or code[0] == "#" else len(line) - len(code)


def _ends(line: str, depth: int) -> bool:
    """Whether a line is the first behind a definition of this indentation."""
    indent = _indent(line)
    return indent is not None and indent <= depth and line.lstrip()[0] not in ")]}"


def _creation(change: FileChange, finding: Finding) -> FilePatch:
    def label(first: int, last: int) -> str:
        return hunk_label(finding)

    diff = unified_diff(change.path, "", change.created, label, created=True)
    return FilePatch(Source(change.path, ""), change.created, (finding,), (), diff, created=True)


def is_rendered(finding: Finding) -> bool:
    """Whether the finding has its diff already, with nothing to add that a run told."""
    return finding.fix is not None and bool(finding.fix.diff) and finding.evidence is None


def with_diff(
    finding: Finding,
    source: Source,
    read: Callable[[str], Source] | None = None,
    tree: ast.Module | None = None,
) -> Finding:
    """The finding with its own fix rendered as a diff of all its files; by default the others are read from disk.

    ``tree`` is the source's, where it is known; it need not hold the bodies of functions.
    """
    fix = finding.fix
    if fix is None or not fix.edits or is_rendered(finding):
        return finding
    others = read or _from_disk

    def chosen(path: str) -> Source:
        return source if path == finding.path else others(path)

    diff = "".join(patch.diff for patch in _plan([finding], chosen, shown=True, tree=tree))
    return dataclasses.replace(finding, fix=dataclasses.replace(fix, diff=diff))


def _from_disk(path: str) -> Source:
    return Source.decode(path, Path(path).read_bytes())


def without_edits(fix: Fix) -> Fix:
    """The fix stepped down to a recommendation, for a rewrite that turned out not to apply."""
    return dataclasses.replace(
        fix, safety=Safety.MANUAL, edits=(), imports=(), effects=(), others=(), diff="", author=""
    )


def plan_files(
    findings: Iterable[Finding], read: Callable[[str], Source], unsafe: bool, only: Sequence[str] = ()
) -> list[FilePatch]:
    """A patch a file, files in order of their best finding. ``read`` gives a path's source."""
    return _plan([f for f in findings if wanted(f, unsafe, only)], read)


def _plan(
    findings: Sequence[Finding], read: Callable[[str], Source], shown: bool = False, tree: ast.Module | None = None
) -> list[FilePatch]:
    shares: dict[str, list[_Share]] = {}
    postponed: dict[str, list[Finding]] = {}
    created: dict[str, FilePatch] = {}
    for finding in findings:
        parts = parts_of(finding)
        taken = {path: [e for share in group for e in share.change.edits] for path, group in shares.items()}
        if any(clashes(part.edits, taken.get(part.path, ())) for part in parts) or any(
            part.created and part.path in created and created[part.path].after != part.created for part in parts
        ):
            postponed.setdefault(finding.path, []).append(finding)
            shares.setdefault(finding.path, [])
            continue
        for part in parts:
            if part.created:
                created.setdefault(part.path, _creation(part, finding))
            else:
                shares.setdefault(part.path, []).append(_Share(finding, part))
    done = [
        _render(read(path), group, postponed.get(path, ()), shown, tree if path == findings[0].path else None)
        for path, group in shares.items()
        if group
    ]
    return [*created.values(), *done]
