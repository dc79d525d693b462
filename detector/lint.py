"""One run of the linter: scan, price, rank, patch, report, exit code."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from awp_lint.detector.config import Settings
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Finding, Problem
from awp_lint.detector.project.reading import content_digest
from awp_lint.detector.project.source import Source, SourceError
from awp_lint.detector.reporting.report import Report

if TYPE_CHECKING:
    from awp_lint.detector.advice.run import Adviser
    from awp_lint.detector.profiling.run import ProfileOutcome
    from awp_lint.detector.scan import ScanResult

EXIT_CLEAN, EXIT_FINDINGS, EXIT_ERROR = 0, 1, 2
# The patch of a step loop is made from all the code below its step, read again: in a tree of more files than this only
# where patches are asked for, or a scan that the cache answers would take half a minute.
_LISTED_FILES = 500
_FIX_PASSES = 10  # a fix can make room for a postponed one; a rewrite that never settles is a rule's bug


def lint(options: argparse.Namespace, settings: Settings, command: Sequence[str] | None) -> int:
    """Scan (and, with a command, profile), report, and return the exit code of the contract."""
    started = time.monotonic()
    result = _scan(options, settings)
    findings = [f for f in result.findings if f.confidence.order >= settings.confidence.order]
    suppressed = tuple(f for f in findings if f.suppressed is not None)
    findings = [f for f in findings if f.suppressed is None]
    if options.write_baseline is not None:
        return _write_baseline(options, findings, result.problems)
    findings, notes = narrow(options, settings, findings)
    if options.write_ignores is not None:
        return _write_ignores(options, settings, findings, list(result.problems))
    profile: dict[str, Any] | None = None
    exit_code: int | None = None
    dependencies: list[Finding] = []
    if command is not None or options.attach is not None or options.trace is not None:
        outcome = _measured(options, settings, command, findings, result)
        dependencies = _dependencies(options, settings, outcome)
        findings = [dataclasses.replace(f, evidence=outcome.evidence.get(f.id)) for f in findings]
        findings += outcome.extra_findings
        profile, exit_code = _with_imports(options, outcome.profile), outcome.exit_code
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
    read = _Sources(result.digests)
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
        return _fix(options, settings, ranked, problems, result.digests)
    ranked = rank([*ranked, *dependencies])  # behind the project's own, and never written by --fix
    if options.diff:
        chosen = ranked if proven is None else [f for f in ranked if f.id in proven]
        return _diff(options, chosen, problems, read)
    report = Report(
        findings=tuple(_with_diffs(ranked, read, problems)),
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
        report = dataclasses.replace(report, profile={**profile, "advice": _advice(report)})
    if options.patch_dir is not None:
        _write_patches(options, report, ranked, problems, read)
    _emit(options, report, to_stderr=command is not None)
    if not options.quiet:
        print_problems(problems)
        if options.format != "text":  # the text report holds them
            for note in notes:
                print(f"awp-lint: {note}", file=sys.stderr)
    if options.fix and proven is not None:
        own = [finding for finding in ranked if finding.origin == "project"]
        return _fix(options, settings, own, problems, result.digests, proven)
    if regressed is not None and not any(problem.fatal for problem in problems):
        return EXIT_FINDINGS if regressed else EXIT_CLEAN
    if command is not None and options.propagate_exit and exit_code is not None:
        return exit_code if exit_code >= 0 else 128 - exit_code  # died of a signal: what a shell would say
    return _exit_code(options, report.counted, problems)


def _adviser(options: argparse.Namespace, settings: Settings, read: _Sources) -> Adviser:
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

    _write_file(options.write_baseline, baseline.render(findings))
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

    read = _Sources()
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
    left = [f for f in _scan(options, settings).findings if f.id in wanted and f.suppressed is None]
    if not options.quiet:
        print(f"{len(wanted) - len(left)} silenced, {len(left)} left", file=sys.stderr)
    print_problems(problems)
    return _exit_code(options, len(left), problems)


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


def _with_imports(options: argparse.Namespace, profile: dict[str, Any]) -> dict[str, Any]:
    """The profile with what other tools measured: counters of kernels, a snapshot of the allocator."""
    if options.ncu is not None:
        from awp_lint.detector.profiling import ncu

        profile = ncu.with_counters(profile, ncu.load(options.ncu), Path(options.ncu).name)
    if options.memory_snapshot is not None:
        from awp_lint.detector.profiling import snapshot

        profile = {**profile, "memory": snapshot.load(options.memory_snapshot)}
    return profile


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
    read: _Sources,
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

    result = _scan(scope, settings)
    wanted = Path(path).resolve()
    found = [f for f in result.findings if Path(f.path).resolve() == wanted and f.span.line <= line <= f.span.end_line]
    problems: list[Problem] = []
    found = with_step_patches(found, scope.paths, settings, problems)
    report = Report(findings=tuple(_with_diffs(rank(found), _Sources(), problems)), files=result.files)
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


def print_problems(problems: Iterable[Problem]) -> None:
    """One line each on standard error."""
    from awp_lint.detector.reporting.terminal import visible

    for problem in problems:
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        print(visible(f"awp-lint: {place}: {problem.message}"), file=sys.stderr)


def _wants_patches(options: argparse.Namespace) -> bool:
    """Whether patches are what was asked for, and not only shown beside the findings."""
    return bool(options.diff or options.fix or options.patch_dir is not None or options.verify)


def _exit_code(options: argparse.Namespace, counted: int, problems: Iterable[Problem]) -> int:
    if any(problem.fatal for problem in problems):
        return EXIT_ERROR
    return EXIT_FINDINGS if counted and not options.exit_zero else EXIT_CLEAN


def _run_options(options: argparse.Namespace) -> dict[str, Any]:
    names = (
        "duration", "max_wait", "warmup", "ready_url", "ready_port", "load", "load_url", "rate", "load_body",
        "verbose", "perfetto", "census", "memory",
    )  # fmt: skip
    return {name: getattr(options, name) for name in names}


def _scan(options: argparse.Namespace, settings: Settings) -> ScanResult:
    from awp_lint.detector.scan import scan

    with _progress(options) as progress:
        return scan(options.paths or ["."], settings, progress=progress)


@contextmanager
def _progress(options: argparse.Namespace) -> Iterator[Callable[[int, int], None] | None]:
    """A bar on standard error for scans that a person would wait for; nothing when piped or quiet."""
    if options.quiet or not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    started = time.monotonic()
    bar: Any = None
    task: Any = None

    def update(done: int, total: int) -> None:
        nonlocal bar, task
        if bar is None:
            if time.monotonic() - started < 0.5:
                return
            from rich.console import Console
            from rich.progress import Progress

            bar = Progress(console=Console(stderr=True), transient=True)
            bar.start()
            task = bar.add_task("scanning", total=total)
        bar.update(task, completed=done, total=total)

    try:
        yield update
    finally:
        if bar is not None:
            bar.stop()


class _Sources:
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


def _write_patches(
    options: argparse.Namespace, report: Report, ranked: Sequence[Finding], problems: list[Problem], read: _Sources
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


def _with_diffs(findings: Iterable[Finding], read: _Sources, problems: list[Problem]) -> Iterator[Finding]:
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


def _diff(options: argparse.Namespace, ranked: Sequence[Finding], problems: list[Problem], read: _Sources) -> int:
    from awp_lint.detector.reporting.terminal import line, use_color, write
    from awp_lint.patches.plan import plan_files

    try:
        patches = plan_files(read.usable(ranked, problems), read, options.unsafe_fixes, options.fix_only)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    text = "".join(patch.diff for patch in patches)
    if options.output:
        _write_file(options.output, text)
    elif use_color(sys.stdout, options.color):
        style = {"+": "green", "-": "red", "@": "cyan"}
        write((line((row, style.get(row[:1], ""))) for row in text.split("\n")[:-1]), sys.stdout, True)
    else:
        sys.stdout.write(text)
    print_problems(problems)
    return _exit_code(options, len(patches), problems)


def _fix(
    options: argparse.Namespace,
    settings: Settings,
    ranked: Sequence[Finding],
    problems: list[Problem],
    digests: Mapping[str, bytes],
    proven: frozenset[str] | None = None,
) -> int:
    """Write the fixes, pass after pass, and say what is left. ``proven``: the only findings whose fixes may be."""
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
            read = _Sources(digests)
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
        result = _scan(options, settings)
        digests = result.digests
        shown = [f for f in result.findings if f.confidence.order >= settings.confidence.order and f.suppressed is None]
        left = narrow(options, settings, shown)[0]
        remaining = rank(with_step_patches(left, options.paths or ["."], settings, problems))
    if not options.quiet:
        print(f"{fixed} fixed, {len(remaining)} left", file=sys.stderr)
    print_problems(problems)
    return _exit_code(options, len(remaining), problems)


def _emit(options: argparse.Namespace, report: Report, to_stderr: bool) -> None:
    from awp_lint.detector.reporting.terminal import plain, use_color, write

    if options.format != "text":
        rendered = _page(options, report) if options.format == "html" else _machine_format(options.format, report)
        if options.output:
            _write_file(options.output, rendered)
        else:
            sys.stdout.write(rendered)
        return
    from awp_lint.detector.reporting import text

    lines = text.statistics(report, _rule_names()) if options.statistics else text.render(report, options.verbose)
    if options.advise and not options.statistics:
        from awp_lint.detector.layers import advise

        unit = report.profile["unit"] if report.profile is not None else "run"
        lines += [(("", ""),), *(((row, ""),) for row in advise.lines(_advice(report), unit, options.verbose))]
    if options.output:
        _write_file(options.output, plain(lines))
        return
    stream = sys.stderr if to_stderr else sys.stdout
    write(lines, stream, use_color(stream, options.color))


def _advice(report: Report) -> dict[str, Any]:
    from awp_lint.detector.layers.advise import advise
    from awp_lint.detector.reporting.json_report import finding_dict

    return advise(report.profile, [finding_dict(finding) for finding in report.findings])


def _page(options: argparse.Namespace, report: Report) -> str:
    from awp_lint.detector.reporting import json_report

    return _rendered_page(options, json_report.as_dict(report))


def _rendered_page(options: argparse.Namespace, data: dict[str, Any]) -> str:
    from awp_lint.detector.reporting.html import page

    other = page.load(options.compare) if options.compare is not None else None
    try:
        return page.render(data, page.reader(), other, Path(options.compare or "").name)
    except (KeyError, TypeError, AttributeError) as error:
        files = [name for name in (options.from_report, options.compare) if name is not None]
        if not files:
            raise
        raise UsageError(f"{' or '.join(files)}: the report is not whole: {error!r}") from error


def show_report(options: argparse.Namespace) -> int:
    """The page of a JSON report that was kept, with what its sources look like now."""
    from awp_lint.detector.reporting.html import page

    data = page.load(options.from_report)
    if data["profile"] is not None:
        data["profile"] = _with_imports(options, data["profile"])
    rendered = _rendered_page(options, data)
    if options.output:
        _write_file(options.output, rendered)
    else:
        sys.stdout.write(rendered)
    return EXIT_CLEAN


def _machine_format(name: str, report: Report) -> str:
    if name == "json":
        from awp_lint.detector.reporting import json_report

        return json_report.render(report)
    if name == "sarif":
        from awp_lint.detector.reporting import sarif
        from awp_lint.rules.docs import explain
        from awp_lint.rules.registry import all_rules

        pages = {r.id: {"name": r.name, "summary": r.summary, "help": explain(r)} for r in all_rules()}
        return sarif.render(report, pages)
    from awp_lint.detector.reporting import ci

    renderers = {"github": ci.github, "gitlab": ci.gitlab, "junit": ci.junit, "markdown": ci.markdown}
    return renderers[name](report)


def _rule_names() -> dict[str, str]:
    from awp_lint.rules.registry import all_rules

    return {rule.id: rule.name for rule in all_rules()}


def _write_file(path: str, text: str) -> None:
    """Write a report whole or not at all."""
    from awp_lint.detector.wholefile import write_whole

    try:
        write_whole(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written: {error.strerror}") from None
