"""Patches on their way out of a run: diffs beside findings, one diff, a series of files, written into the sources."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from awp_lint.detector.config import Settings
from awp_lint.detector.errors import UsageError, exit_code
from awp_lint.detector.finding import Finding, Problem
from awp_lint.detector.output import print_problems, write_file
from awp_lint.detector.project.reading import content_digest
from awp_lint.detector.project.source import Source, SourceError
from awp_lint.detector.reporting.report import Report

_FIX_PASSES = 10  # a fix can make room for a postponed one; a rewrite that never settles is a rule's bug


class Sources:
    """The sources of the files that findings lie in, each read once.

    Raises :class:`ValueError` for a file that is not what it was when it was scanned: edits would miss their places.
    """

    def __init__(self, digests: Mapping[str, bytes] | None = None) -> None:
        self._digests = digests or {}
        self._read: dict[str, Source] = {}

    def __call__(self, path: str) -> Source:
        if path not in self._read:
            raw = Path(path).read_bytes()
            known = self._digests.get(path)
            if known is not None and known != content_digest(raw):
                raise ValueError(f"{path}: changed since it was scanned; run again")
            self._read[path] = Source.decode(path, raw)
        return self._read[path]

    def usable(self, findings: Iterable[Finding], problems: list[Problem]) -> list[Finding]:
        """The findings whose files can be patched; what is wrong with the others is a problem, once a file."""
        wrong: set[str] = set()
        found: list[Finding] = []
        for finding in findings:
            if finding.fix is None or not finding.fix.edits or finding.path in wrong:
                continue
            try:
                for path in (finding.path, *(other.path for other in finding.fix.others if not other.created)):
                    self(path)
            except (ValueError, OSError, SourceError) as error:
                wrong.add(finding.path)
                reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
                problem = Problem(finding.path, reason.removeprefix(f"{finding.path}: "), fatal=True)
                if problem not in problems:
                    problems.append(problem)
                continue
            found.append(finding)
        return found


def write_patches(
    options: argparse.Namespace, report: Report, ranked: Sequence[Finding], problems: list[Problem], read: Sources
) -> None:
    """The series for --patch-dir, and one line that says where it is."""
    from awp_lint.detector.reporting.letters import write_series
    from awp_lint.patches.series import series

    try:
        made = series(read.usable(ranked, problems), read, options.unsafe_fixes, options.fix_only)
    except ValueError as error:
        raise UsageError(str(error)) from None
    names = write_series(options.patch_dir, made, report)
    if not options.quiet:
        count = f"{len(names)} patch{'' if len(names) == 1 else 'es'}"
        print(f"awp-lint: {count} in {options.patch_dir}, cover-letter.txt says what they are worth", file=sys.stderr)


def with_diffs(findings: Iterable[Finding], read: Sources, problems: list[Problem]) -> Iterator[Finding]:
    from awp_lint.patches.plan import is_rendered, with_diff, without_edits

    for finding in findings:
        if finding.fix is None or not finding.fix.edits or is_rendered(finding):
            yield finding
            continue
        try:
            yield with_diff(finding, read(finding.path), read)
        except (ValueError, SyntaxError, OSError) as error:
            problems.append(Problem(finding.path, f"no diff for {finding.rule}: {error}", finding.span.line))
            yield dataclasses.replace(finding, fix=without_edits(finding.fix))


def print_diff(options: argparse.Namespace, ranked: Sequence[Finding], problems: list[Problem], read: Sources) -> int:
    from awp_lint.detector.reporting.terminal import line, use_color, write
    from awp_lint.patches.plan import plan_files

    try:
        patches = plan_files(read.usable(ranked, problems), read, options.unsafe_fixes, options.fix_only)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    text = "".join(patch.diff for patch in patches)
    if options.output:
        write_file(options.output, text)
    elif use_color(sys.stdout, options.color):
        style = {"+": "green", "-": "red", "@": "cyan"}
        write((line((row, style.get(row[:1], ""))) for row in text.split("\n")[:-1]), sys.stdout, True)
    else:
        sys.stdout.write(text)
    print_problems(problems)
    return exit_code(options, len(patches), problems)


def write_fixes(
    options: argparse.Namespace,
    settings: Settings,
    ranked: Sequence[Finding],
    problems: list[Problem],
    digests: Mapping[str, bytes],
    again: Callable[[], tuple[list[Finding], Mapping[str, bytes]]],
    proven: frozenset[str] | None = None,
) -> int:
    """Write the fixes, pass after pass, and say what is left.

    ``again`` scans anew: the findings that are shown, and the files' digests. ``proven``: the only findings whose fixes
    may be written.
    """
    from awp_lint.patches.plan import plan_files
    from awp_lint.patches.ranking import rank
    from awp_lint.patches.steploop.build import with_step_patches
    from awp_lint.patches.write import WriteError, write_patch

    fixed, failed = 0, []
    remaining: Sequence[Finding] = ranked
    roots = [Path(path).resolve() for path in (".", *options.paths)]
    for _ in range(_FIX_PASSES):
        try:
            chosen = remaining if proven is None else [f for f in remaining if f.id in proven]
            read = Sources(digests)
            patches = plan_files(read.usable(chosen, problems), read, options.unsafe_fixes, options.fix_only)
        except (ValueError, OSError) as error:
            raise UsageError(str(error)) from None
        patches = [p for p in patches if p.source.path not in failed]
        if not patches:
            break
        done: set[str] = set()  # a fix may have parts in several files
        for patch in patches:
            try:
                write_patch(patch, roots)
                done.update(finding.id for finding in patch.applied)
            except WriteError as error:
                failed.append(patch.source.path)
                problems.append(
                    Problem(patch.source.path, str(error).removeprefix(f"{patch.source.path}: "), fatal=True)
                )
        fixed += len(done)
        left, digests = again()
        remaining = rank(with_step_patches(left, options.paths or ["."], settings, problems))
    if not options.quiet:
        print(f"{fixed} fixed, {len(remaining)} left", file=sys.stderr)
    print_problems(problems)
    return exit_code(options, len(remaining), problems)
