"""What the options ask for: help pages, a scan, a profile run, a diff, a fix."""

from __future__ import annotations

import argparse
import dataclasses
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from awp_lint.detector import lint, output
from awp_lint.detector.config import Settings, load_settings
from awp_lint.detector.errors import EXIT_CLEAN, EXIT_ERROR, UsageError
from awp_lint.detector.finding import Confidence
from awp_lint.detector.target import project_target


def run(options: argparse.Namespace, command: Sequence[str] | None) -> int:
    """Carry out a parsed command line; the exit code of the contract. Raises :class:`UsageError`."""
    if options.lsp:
        return _language_server()
    if options.explain is not None:
        return _explain(options.explain)
    if options.explain_metric is not None:
        return _explain_metric(options.explain_metric)
    if options.ledger:
        return _ledger()
    if options.list_rules:
        return _list_rules(options.format)
    if options.from_report is not None:
        return output.show_report(options)
    settings = settings_of(options)
    _check_selection(settings)
    if options.show_settings:
        return _show_settings(settings)
    if options.show_files:
        return _show_files(options.paths, settings)
    if options.explain_finding is not None:
        return _explain_finding(options, settings)
    if options.watch:
        from awp_lint.detector.editor.watch import watch

        return watch(options.paths or ["."], lambda: settings_of(options), lambda now: lint.lint(options, now, None))
    if options.llm:
        from awp_lint.detector.advice.settings import resolve

        options.llm_settings = resolve(options, _settings_folder(options.paths))
    return lint.lint(options, settings, command)


def _language_server() -> int:
    try:
        from awp_lint.detector.editor.server import serve
    except ImportError as error:
        raise UsageError(f"{error.name} is missing: pip install 'awp-lint[lsp]'") from None
    return serve()


def settings_of(options: argparse.Namespace) -> Settings:
    """The settings in force: defaults, project files, settings file, command line."""
    overrides: list[tuple[str, Any]] = []
    for name in ("select", "ignore", "extend_select", "jobs", "target_torch", "target_transformers", "target_device"):
        value = getattr(options, name)
        if value is not None:
            overrides.append((name, value))
    if options.confidence is not None:
        overrides.append(("confidence", Confidence(options.confidence)))
    if options.no_cache:
        overrides.append(("cache", False))
    folder = _settings_folder(options.paths)
    return load_settings(folder, options.config, options.isolated, project_target(folder), overrides)


def _settings_folder(paths: Sequence[str]) -> Path:
    """Where settings are looked for: the working folder, or the scanned tree when it lies elsewhere."""
    here = Path.cwd()
    if not paths:
        return here
    first = Path(paths[0])
    folder = (first if first.is_dir() else first.parent).resolve()
    return here if folder == here or here in folder.parents else folder


def _check_selection(settings: Settings) -> None:
    """An id or prefix that matches no rule is a typing error, not an empty selection."""
    from awp_lint.rules.registry import rule_ids

    known = rule_ids()
    for prefix in (*settings.select, *settings.ignore, *settings.extend_select):
        if not any(rule.startswith(prefix) or prefix.startswith(rule) for rule in known):
            raise UsageError(f"no rule matches {prefix!r}; see awp-lint --list-rules")


def _explain(name: str) -> int:
    from awp_lint.rules.docs import explain
    from awp_lint.rules.registry import all_rules

    wanted = name.upper()
    for rule in all_rules():
        if wanted in (rule.id, rule.name.upper()):
            _print_markdown(explain(rule))
            return EXIT_CLEAN
    raise UsageError(f"no rule is called {name!r}; see awp-lint --list-rules")


def _ledger() -> int:
    from awp_lint.detector import ledger

    path = ledger.place()
    if path is None:
        raise UsageError("AWP_LINT_LEDGER switches the ledger off here")
    print("\n".join(ledger.report(ledger.read(path), path)))
    return EXIT_CLEAN


def _explain_metric(name: str) -> int:
    from awp_lint.detector.reporting import metrics

    if not name:
        for metric in metrics.METRICS.values():
            healthy = f"healthy: {metric.healthy}" if metric.healthy else ""
            print(f"{metric.name:<25} {metric.title:<42} {healthy}".rstrip())
        return EXIT_CLEAN
    found = metrics.find(name)
    if found is None:
        near = metrics.near(name)
        hint = f"; near to it: {', '.join(near)}" if near else "; --explain-metric alone lists all"
        raise UsageError(f"no number is called {name!r}{hint}")
    print("\n".join(metrics.explain(found)))
    return EXIT_CLEAN


def _print_markdown(text: str) -> None:
    """A rule's page: rendered on a terminal, as it is when piped."""
    from awp_lint.detector.reporting.terminal import use_color

    if not use_color(sys.stdout, "auto"):
        print(text.rstrip("\n"))
        return
    from rich.console import Console
    from rich.markdown import Markdown

    Console().print(Markdown(text))


def _list_rules(form: str) -> int:
    from awp_lint.rules.registry import all_rules

    rules = sorted(all_rules(), key=lambda rule: rule.id)
    if form == "json":
        import json

        rows = [
            {
                "id": rule.id,
                "name": rule.name,
                "root_cause": rule.root_cause.value,
                "confidence": rule.confidence.value,
                "rewrite": rule.rewrites(),
                "summary": rule.summary,
            }
            for rule in rules
        ]
        print(json.dumps(rows, indent=1, ensure_ascii=False))
    else:
        for rule in rules:
            print(f"{rule.id}  {rule.name:<24} {rule.root_cause.value:<13} {rule.confidence.value:<7} {rule.summary}")
    return EXIT_CLEAN


def _show_settings(settings: Settings) -> int:
    import enum

    for field in dataclasses.fields(settings):
        value = getattr(settings, field.name)
        words = value.value if isinstance(value, enum.Enum) else value
        print(f"{field.name.replace('_', '-')} = {words}")
    return EXIT_CLEAN


def _show_files(paths: Sequence[str], settings: Settings) -> int:
    from awp_lint.detector.scan import files_to_scan

    files, problems = files_to_scan(paths, settings)
    for path in files:
        print(path)
    output.print_problems(problems)
    return EXIT_ERROR if any(p.fatal for p in problems) else EXIT_CLEAN


def _explain_finding(options: argparse.Namespace, settings: Settings) -> int:
    path, _, number = options.explain_finding.rpartition(":")
    if not path or not number.isdecimal() or len(number) > 9:
        raise UsageError(f"--explain-finding takes FILE:LINE, not {options.explain_finding!r}")
    loose = dataclasses.replace(settings, confidence=Confidence.LOW)
    return lint.explain_finding(options, loose, path, int(number))
