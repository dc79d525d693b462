"""One run of the linter: scan, price, rank, patch, report, exit code."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from awp_lint.detector.applying import Sources, print_diff, with_diffs, write_fixes, write_patches
from awp_lint.detector.config import Settings
from awp_lint.detector.errors import EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS, UsageError, exit_code
from awp_lint.detector.finding import Finding, Problem
from awp_lint.detector.output import advice, emit, print_problems, with_imports, write_file
from awp_lint.detector.progress import scan_shown
from awp_lint.detector.reporting.report import Report

if TYPE_CHECKING:
    from awp_lint.detector.advice.run import Adviser
    from awp_lint.detector.profiling.run import ProfileOutcome
    from awp_lint.detector.scan import ScanResult

# The patch of a step loop is made from all the code below its step, read again: in a tree of more files than this only
# where patches are asked for, or a scan that the cache answers would take half a minute.
_LISTED_FILES = 500


def lint(options: argparse.Namespace, settings: Settings, command: Sequence[str] | None) -> int:
    """Scan (and, with a command, profile), report, and return the exit code of the contract."""
    started = time.monotonic()
    result = scan_shown(options, settings)
    findings = [f for f in result.findings if f.confidence.order >= settings.confidence.order]
    suppressed = tuple(f for f in findings if f.suppressed is not None)
    findings = [f for f in findings if f.suppressed is None]
    if options.write_baseline is not None:
        return _write_baseline(options, findings, result.problems)
    findings, notes = narrow(options, settings, findings)
    if options.write_ignores is not None:
        return _write_ignores(options, settings, findings, list(result.problems))
    profile: dict[str, Any] | None = None
    ended: int | None = None  # the program, with this code
    dependencies: list[Finding] = []
    if command is not None or options.attach is not None or options.trace is not None:
        outcome = _measured(options, settings, command, findings, result)
        dependencies = _dependencies(options, settings, outcome)
        findings = [dataclasses.replace(f, evidence=outcome.evidence.get(f.id)) for f in findings]
        findings += outcome.extra_findings
        profile, ended = with_imports(options, outcome.profile), outcome.exit_code
        notes += tuple(outcome.notes)
    elif options.use_profile is not None:
        from awp_lint.detector.verification.saved import priced

        known, profile, note = priced(options.use_profile, findings)
        findings = [dataclasses.replace(f, evidence=known.get(f.id)) for f in findings]
        notes += (note,)
    regressed: int | None = None
    if command is not None and profile is not None and (options.guard or options.save_profile):
        profile, more, regressed = _kept(options, command, findings, profile)
        notes += tuple(more)
    from awp_lint.patches.ranking import rank

    problems = [*result.problems, *result.unused]
    read = Sources(result.digests)
    adviser = _adviser(options, settings, read) if options.llm else None
    if adviser is not None and not options.llm_dry_run:
        findings = adviser.judge(findings)
    if _wants_patches(options) or result.files <= _LISTED_FILES:
        from awp_lint.patches.steploop.build import with_step_patches

        findings = with_step_patches(findings, options.paths or ["."], settings, problems)
    ranked = rank(findings)
    if adviser is not None and options.llm_dry_run:
        sys.stdout.write(adviser.questions(ranked))
        return EXIT_CLEAN
    if adviser is not None:
        ranked = adviser.write(ranked)
        notes += adviser.notes()

    def again() -> tuple[list[Finding], Mapping[str, bytes]]:
        newly = scan_shown(options, settings)
        shown = [f for f in newly.findings if f.confidence.order >= settings.confidence.order and f.suppressed is None]
        return narrow(options, settings, shown)[0], newly.digests

    proven: frozenset[str] | None = None
    if options.verify and command is not None:
        ranked, profile, told, proven = _proven(options, command, ranked, result, read, profile)
        notes = (*notes, *told)
        if adviser is not None:
            ranked = adviser.proven(ranked)
    if command is not None and profile is not None and settings.ledger and not options.no_ledger:
        from awp_lint.detector import ledger

        ledger.keep(profile, ranked, command)
    if options.fix and proven is None:
        return write_fixes(options, settings, ranked, problems, result.digests, again)
    ranked = rank([*ranked, *dependencies])  # behind the project's own, and never written by --fix
    if options.diff:
        chosen = ranked if proven is None else [f for f in ranked if f.id in proven]
        return print_diff(options, chosen, problems, read)
    report = Report(
        findings=tuple(with_diffs(ranked, read, problems)),
        suppressed=suppressed,
        problems=tuple(problems),
        target=settings.target,
        profile=profile,
        files=result.files,
        lines=result.lines,
        seconds=time.monotonic() - started,
        notes=notes,
        include_dependencies=options.include_deps,
    )
    if options.advise and profile is not None:
        report = dataclasses.replace(report, profile={**profile, "advice": advice(report)})
    if options.patch_dir is not None:
        write_patches(options, report, ranked, problems, read)
    emit(options, report, to_stderr=command is not None)
    if not options.quiet:
        print_problems(problems)
        if options.format != "text":  # the text report holds them
            for note in notes:
                print(f"awp-lint: {note}", file=sys.stderr)
    if options.fix and proven is not None:
        own = [finding for finding in ranked if finding.origin == "project"]
        return write_fixes(options, settings, own, problems, result.digests, again, proven)
    if regressed is not None and not any(problem.fatal for problem in problems):
        return EXIT_FINDINGS if regressed else EXIT_CLEAN
    if command is not None and options.propagate_exit and ended is not None:
        return ended if ended >= 0 else 128 - ended  # died of a signal: what a shell would say
    return exit_code(options, report.counted, problems)


def _adviser(options: argparse.Namespace, settings: Settings, read: Sources) -> Adviser:
    """What asks the language model; its progress goes to a person's terminal alone."""
    from awp_lint.detector.advice.run import Adviser

    def report(text: str) -> None:
        if not options.quiet and sys.stderr.isatty():
            print(f"awp-lint: language model: {text}", file=sys.stderr)

    return Adviser(options.llm_settings, options.paths or ["."], settings, read, report)


def narrow(
    options: argparse.Namespace, settings: Settings, findings: Sequence[Finding]
) -> tuple[list[Finding], tuple[str, ...]]:
    """The findings that a baseline and ``--changed`` leave, and a note on what they leave out."""
    kept = list(findings)
    notes: list[str] = []
    known = options.baseline or settings.baseline
    if known is not None:
        from awp_lint.detector import baseline

        matched = baseline.match(kept, baseline.read(known))
        kept = list(matched.new)
        gone = f", {len(matched.gone)} of its entries found no more" if matched.gone else ""
        notes.append(f"{len(matched.known)} known from {os.path.relpath(known)}{gone}")
    if options.changed or options.changed_from is not None:
        from awp_lint.detector.changes import changed_in_working_tree, on_changed_lines

        before = len(kept)
        kept = on_changed_lines(kept, changed_in_working_tree(options.changed_from))
        notes.append(f"{before - len(kept)} on lines that the change leaves alone")
    return kept, tuple(notes)


def _write_baseline(options: argparse.Namespace, findings: Sequence[Finding], problems: Sequence[Problem]) -> int:
    from awp_lint.detector import baseline

    write_file(options.write_baseline, baseline.render(findings))
    if not options.quiet:
        print(f"awp-lint: {len(findings)} findings are known now: {options.write_baseline}", file=sys.stderr)
        print_problems(problems)
    return EXIT_ERROR if any(problem.fatal for problem in problems) else EXIT_CLEAN


def _write_ignores(
    options: argparse.Namespace, settings: Settings, findings: Sequence[Finding], problems: list[Problem]
) -> int:
    """Write a comment above each statement with findings, look again, and say what is still not silenced."""
    from awp_lint.detector.ignoring import ignore_edits
    from awp_lint.patches.plan import FilePatch
    from awp_lint.patches.splice import splice
    from awp_lint.patches.write import WriteError, write_patch

    read = Sources()
    by_path: dict[str, list[Finding]] = {}
    for finding in findings:
        if finding.cell is None and finding.origin == "project" and finding.path.endswith((".py", ".pyi")):
            by_path.setdefault(finding.path, []).append(finding)
    for path, group in by_path.items():
        try:
            source = read(path)
            after = splice(source.text, ignore_edits(source, group, options.write_ignores))
            write_patch(FilePatch(source, after, tuple(group), (), ""))
        except (WriteError, ValueError, SyntaxError, OSError) as error:
            problems.append(Problem(path, str(error).removeprefix(f"{path}: "), fatal=True))
    wanted = {finding.id for finding in findings}
    left = [f for f in scan_shown(options, settings).findings if f.id in wanted and f.suppressed is None]
    if not options.quiet:
        print(f"{len(wanted) - len(left)} silenced, {len(left)} left", file=sys.stderr)
    print_problems(problems)
    return exit_code(options, len(left), problems)


def _measured(
    options: argparse.Namespace,
    settings: Settings,
    command: Sequence[str] | None,
    findings: Sequence[Finding],
    result: ScanResult,
) -> ProfileOutcome:
    """What a run of the command, of the program that runs already, or a trace of one says of the findings."""
    run_options = _run_options(options)
    if options.trace is None:
        from awp_lint.detector.dependencies import dependencies_of

        run_options["late"] = dependencies_of(options.paths or ["."], settings, findings)
    if command is not None:
        from awp_lint.detector.profiling.run import profile_findings

        return profile_findings(findings, result.units, command, run_options)
    if options.trace is not None:
        if not Path(options.trace).is_file():
            raise UsageError(f"{options.trace}: no such trace file")
        from awp_lint.detector.profiling.run import analyse_trace

        return analyse_trace(options.trace, findings)
    from awp_lint.detector.profiling.attach import profile_running

    return profile_running(findings, result.units, options.attach, run_options)


def _dependencies(options: argparse.Namespace, settings: Settings, outcome: ProfileOutcome) -> list[Finding]:
    """The findings in libraries that a report shows; without ``--include-deps`` they get no fix."""
    from awp_lint.detector.dependencies import shown

    found = shown(outcome.dependencies, settings.confidence)
    return found if options.include_deps else [dataclasses.replace(finding, fix=None) for finding in found]


def _kept(
    options: argparse.Namespace, command: Sequence[str], findings: Sequence[Finding], profile: dict[str, Any]
) -> tuple[dict[str, Any], list[str], int | None]:
    """Compare the run with saved ones, and save it: the profile, notes, the number of regressions (None: unasked)."""
    from awp_lint.detector.reporting.json_report import evidence_dict
    from awp_lint.detector.verification import saved
    from awp_lint.detector.verification.guard import guard

    run = saved.run_of(findings, profile, {f.id: evidence_dict(f.evidence) for f in findings})
    notes: list[str] = []
    regressed: int | None = None
    if options.guard is not None:
        found = guard(saved.load(options.guard)["runs"], run)
        profile = {**profile, "guard": found.as_dict()}
        regressed = len(found.regressions)
        compared = ", ".join(found.compared) or "nothing"
        notes.append(f"guard ({found.scope}): {regressed} regressions against {options.guard}; compared: {compared}")
        for regression in found.regressions:
            notes += [f"guard: {regression.text}", *(f"guard:   {place}" for place in regression.where)]
        notes += [f"guard: {note}" for note in found.notes]
    if options.save_profile is not None:
        count = saved.save(options.save_profile, command, run)
        notes.append(f"{options.save_profile} holds {count} run{'s' if count > 1 else ''} of this command")
    return profile, notes, regressed


def _proven(
    options: argparse.Namespace,
    command: Sequence[str],
    ranked: Sequence[Finding],
    result: ScanResult,
    read: Sources,
    profile: dict[str, Any] | None,
) -> tuple[list[Finding], dict[str, Any] | None, list[str], frozenset[str]]:
    """The findings with what was proven of their patches, in their new order; the ids of the proven ones last."""
    from awp_lint.detector.verification import launching, prove
    from awp_lint.patches.ranking import rank

    proof = prove.prove(
        ranked,
        result.units,
        command,
        _run_options(options),
        read,
        options.budget or prove.BUDGET,
        options.fix_only,
        report=(lambda line: None) if options.quiet else launching.say,
    )
    found = [dataclasses.replace(f, verification=proof.by_finding.get(f.id)) for f in ranked]
    if profile is not None:
        profile = {**profile, "verification": proof.summary}
    return rank(found), profile, proof.notes, proof.proven


def explain_finding(options: argparse.Namespace, settings: Settings, path: str, line: int) -> int:
    """Print every reason behind the findings at one line, hidden ones included."""
    from awp_lint.detector.reporting import text
    from awp_lint.detector.reporting.terminal import use_color, write
    from awp_lint.patches.ranking import rank

    if not Path(path).is_file():
        raise UsageError(f"{path}: no such file")
    scope = argparse.Namespace(**{**vars(options), "paths": options.paths or [_project_root(Path(path))]})
    from awp_lint.patches.steploop.build import with_step_patches

    result = scan_shown(scope, settings)
    wanted = Path(path).resolve()
    found = [f for f in result.findings if Path(f.path).resolve() == wanted and f.span.line <= line <= f.span.end_line]
    problems: list[Problem] = []
    found = with_step_patches(found, scope.paths, settings, problems)
    report = Report(findings=tuple(with_diffs(rank(found), Sources(), problems)), files=result.files)
    if not found:
        print(f"{path}:{line}: no finding at any confidence")
        return EXIT_CLEAN
    write(text.render(report, verbose=True), sys.stdout, use_color(sys.stdout, options.color))
    return EXIT_FINDINGS


def _project_root(path: Path) -> str:
    """The outermost package folder around a file: frequency is decided by its callers."""
    folder = path.resolve().parent
    while (folder / "__init__.py").exists() and folder.parent != folder:
        folder = folder.parent
    return str(folder)


def _wants_patches(options: argparse.Namespace) -> bool:
    """Whether patches are what was asked for, and not only shown beside the findings."""
    return bool(options.diff or options.fix or options.patch_dir is not None or options.verify)


def _run_options(options: argparse.Namespace) -> dict[str, Any]:
    names = (
        "duration", "max_wait", "warmup", "ready_url", "ready_port", "load", "load_url", "rate", "load_body",
        "verbose", "perfetto", "census", "memory",
    )  # fmt: skip
    return {name: getattr(options, name) for name in names}
