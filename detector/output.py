"""What a run prints and writes: reports in every format, the page, problems."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import EXIT_CLEAN, UsageError
from awp_lint.detector.finding import Problem
from awp_lint.detector.reporting.report import Report


def print_problems(problems: Iterable[Problem]) -> None:
    """One line each on standard error."""
    from awp_lint.detector.reporting.terminal import visible

    for problem in problems:
        place = problem.path if problem.line is None else f"{problem.path}:{problem.line}"
        print(visible(f"awp-lint: {place}: {problem.message}"), file=sys.stderr)


def emit(options: argparse.Namespace, report: Report, to_stderr: bool) -> None:
    from awp_lint.detector.reporting.terminal import plain, use_color, write

    if options.format != "text":
        rendered = _page(options, report) if options.format == "html" else machine_format(options.format, report)
        if options.output:
            write_file(options.output, rendered)
        else:
            sys.stdout.write(rendered)
        return
    from awp_lint.detector.reporting import text

    lines = text.statistics(report, _rule_names()) if options.statistics else text.render(report, options.verbose)
    if options.advise and not options.statistics:
        from awp_lint.detector.layers import advise

        unit = report.profile["unit"] if report.profile is not None else "run"
        lines += [(("", ""),), *(((row, ""),) for row in advise.lines(advice(report), unit, options.verbose))]
    if options.output:
        write_file(options.output, plain(lines))
        return
    stream = sys.stderr if to_stderr else sys.stdout
    write(lines, stream, use_color(stream, options.color))


def advice(report: Report) -> dict[str, Any]:
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
        data["profile"] = with_imports(options, data["profile"])
    rendered = _rendered_page(options, data)
    if options.output:
        write_file(options.output, rendered)
    else:
        sys.stdout.write(rendered)
    return EXIT_CLEAN


def machine_format(name: str, report: Report) -> str:
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


def write_file(path: str, text: str) -> None:
    """Write a report whole or not at all."""
    from awp_lint.detector.wholefile import write_whole

    try:
        write_whole(path, text.encode("utf-8", "surrogateescape"))
    except OSError as error:
        raise UsageError(f"{path}: the report cannot be written: {error.strerror}") from None


def with_imports(options: argparse.Namespace, profile: dict[str, Any]) -> dict[str, Any]:
    """The profile with what other tools measured: counters of kernels, a snapshot of the allocator."""
    if options.ncu is not None:
        from awp_lint.detector.profiling import ncu

        profile = ncu.with_counters(profile, ncu.load(options.ncu), Path(options.ncu).name)
    if options.memory_snapshot is not None:
        from awp_lint.detector.profiling import snapshot

        profile = {**profile, "memory": snapshot.load(options.memory_snapshot)}
    return profile
