"""The command line: what the options are, and where the user's own command begins.

``--profile`` ends our options: the first exact ``--profile`` before any ``--`` splits the line, what follows is the
user's command, untouched (less one leading ``--``). argparse alone cannot do this for every command.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from awp_lint import __version__
from awp_lint.detector.config import DEVICES, parse_version
from awp_lint.detector.errors import UsageError

FORMATS = ("text", "json", "sarif", "github", "gitlab", "junit", "markdown", "html")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


def split_command(argv: Sequence[str]) -> tuple[list[str], list[str] | None]:
    """Our own arguments and the user's command (None without ``--profile``).

    Raises :class:`UsageError` for ``--profile=…`` and for ``--profile`` without a command.
    """
    for index, word in enumerate(argv):
        if word == "--":
            break
        if word.startswith("--profile="):
            raise UsageError("write the command after a space: --profile CMD ARG…, not --profile=CMD")
        if word == "--profile":
            command = list(argv[index + 1 :])
            if command[:1] == ["--"]:
                command = command[1:]
            if not command:
                raise UsageError("--profile needs a command: awp-lint --profile python server.py")
            return list(argv[:index]), command
    return list(argv), None


def split_agent(argv: Sequence[str]) -> list[str] | None:
    """The command to be started with a dormant agent; None without ``--agent``.

    Like ``--profile`` it ends our options. Raises :class:`UsageError` for ``--agent`` without a command, or with
    anything before it.
    """
    for index, word in enumerate(argv):
        if word in ("--", "--profile"):
            break
        if word == "--agent":
            command = list(argv[index + 1 :])
            if command[:1] == ["--"]:
                command = command[1:]
            if not command:
                raise UsageError("--agent needs a command: awp-lint --agent python server.py")
            if index:
                raise UsageError("--agent only starts the command: paths and options go with --attach, later")
            return command
    return None


def _ids(text: str) -> tuple[str, ...]:
    ids = tuple(part.strip().upper() for part in text.split(",") if part.strip())
    for name in ids:
        if not name.startswith("AWP"):
            raise argparse.ArgumentTypeError(f"{name!r} is no rule id or prefix; they begin with AWP")
    return ids


def _version(text: str) -> tuple[int, int]:
    try:
        return parse_version(text)
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r} is no version such as 2.5") from None


def _seconds(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value < 10_000_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no positive number of seconds")
    return value


def _rate(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 < value <= 10_000:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of requests a second")
    return value


def _jobs(text: str) -> int:
    if not text.isdigit() or int(text) > 1024:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of jobs (0: one a core)")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or len(text) > 10:
        raise argparse.ArgumentTypeError(f"{text!r} is no whole number")
    return int(text)


def _names(text: str) -> tuple[str, ...]:
    names = tuple(part.strip() for part in text.split(",") if part.strip())
    if not names:
        raise argparse.ArgumentTypeError("the name of a model is missing")
    return names


def build_parser() -> argparse.ArgumentParser:
    """The parser for our own half of the line; the user's command never reaches it."""
    parser = _Parser(
        prog="awp-lint",
        usage="awp-lint [PATH…] [options] [--profile CMD ARG…]",
        description="Find the lines of PyTorch inference code that waste the accelerator, price them, get the diff.",
        epilog="Exit code: 0 no findings, 1 findings, 2 wrong use or an error. Docs of one rule: --explain AWP101.",
        allow_abbrev=False,
        add_help=False,
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="files or folders (default: the current folder)")

    rules = parser.add_argument_group("which findings")
    rules.add_argument("--select", type=_ids, metavar="IDS", help="only these rule ids or prefixes, comma-separated")
    rules.add_argument("--ignore", type=_ids, metavar="IDS", help="all but these")
    rules.add_argument("--extend-select", type=_ids, metavar="IDS", help="these too")
    rules.add_argument("--confidence", choices=("high", "medium", "low"), help="lowest shown (default: medium)")

    rules.add_argument("--changed", action="store_true", help="only on lines changed since the merge base with main")
    rules.add_argument("--changed-from", metavar="REF", help="... with this branch or commit")
    rules.add_argument("--baseline", metavar="FILE", help="only what this file does not know yet")
    rules.add_argument("--write-baseline", metavar="FILE", help="make all present findings known, in this file")

    rules.add_argument("--write-ignores", metavar="REASON", help="silence what is found by comments with this reason")

    report = parser.add_argument_group("report")
    report.add_argument("--format", choices=FORMATS, default="text", help="default: text")
    report.add_argument("--output", metavar="FILE", help="where the report goes (default: standard output)")
    report.add_argument(
        "--compare", metavar="FILE", help="with --format html: set against the JSON report of an earlier run"
    )
    report.add_argument(
        "--from-report", metavar="FILE", help="with --format html: a page from a JSON report; nothing is scanned or run"
    )
    report.add_argument(
        "--advise", action="store_true", help="also what to pull next beyond single lines; sharper with a profile run"
    )
    report.add_argument("--statistics", action="store_true", help="counts by rule instead of the findings")
    report.add_argument("--color", choices=("auto", "always", "never"), default="auto")
    report.add_argument("--quiet", action="store_true", help="no messages, only the report")
    report.add_argument("--verbose", action="store_true", help="also hidden details: timings, every note")
    report.add_argument("--exit-zero", action="store_true", help="exit 0 even with findings")

    patches = parser.add_argument_group("patches")
    patches.add_argument(
        "--diff", action="store_true", help="print the patches as one git-applicable diff; write nothing"
    )
    patches.add_argument("--fix", action="store_true", help="apply the safe fixes")
    patches.add_argument(
        "--unsafe-fixes",
        action="store_true",
        help="with --fix, --diff or --patch-dir: also fixes that need a condition",
    )
    patches.add_argument(
        "--fix-only", type=_ids, metavar="IDS", default=(), help="with --fix, --diff or --patch-dir: only these rules"
    )
    patches.add_argument(
        "--patch-dir",
        metavar="DIR",
        help="write one patch a finding there, in order, and a cover letter; change nothing",
    )

    run = parser.add_argument_group("profile run (before --profile)")
    run.add_argument("--duration", type=_seconds, metavar="S", help="of a program that does not end (default: 60)")
    run.add_argument("--max-wait", type=_seconds, default=600.0, metavar="S", help="for the first work (600)")
    run.add_argument("--warmup", default="auto", metavar="S", help="seconds left out at the start (default: auto)")
    run.add_argument("--ready-url", metavar="URL", help="the server is ready when this answers")
    run.add_argument("--ready-port", type=int, metavar="PORT", help="the server is ready when this port accepts")
    run.add_argument("--load", metavar="CMD", help="load generator for the shell, started once the server is ready")
    run.add_argument("--load-url", metavar="URL", help="or: send requests there ourselves, waiting for no answer")
    run.add_argument("--rate", type=_rate, metavar="N", help="requests a second (default: 1)")
    run.add_argument(
        "--load-body",
        action="append",
        metavar="JSON|@FILE",
        help="post this instead of a GET; several, or a file of JSON Lines, take turns",
    )
    run.add_argument(
        "--include-deps",
        action="store_true",
        help="findings in libraries that run hot count and get diffs (else they are only priced)",
    )
    run.add_argument(
        "--census",
        action="store_true",
        help="also have torch name every wait for the device: those that no rule flagged, with their lines (CUDA)",
    )
    run.add_argument(
        "--memory", action="store_true", help="also the allocator's account: peak, weights, allocations a unit (CUDA)"
    )
    run.add_argument("--attach", metavar="PID", help="profile a program that runs: one started by awp-lint --agent CMD")
    run.add_argument(
        "--trace", metavar="FILE", help="evidence made elsewhere instead: Kineto JSON(.gz) or Nsight Systems SQLite"
    )
    run.add_argument("--ncu", metavar="FILE", help="counters of kernels: a CSV export of Nsight Compute")
    run.add_argument(
        "--memory-snapshot", metavar="FILE", help="what memory holds at its peak: a snapshot of PyTorch's allocator"
    )
    run.add_argument(
        "--verify",
        action="store_true",
        help="prove patches by A/B in the program (launched again for it); with --fix: write only proven ones",
    )
    run.add_argument("--budget", type=_seconds, metavar="S", help="for --verify, in all (default: 180)")
    run.add_argument("--save-profile", metavar="FILE", help="keep the priced run there, behind earlier runs of it")
    run.add_argument("--use-profile", metavar="FILE", help="take prices from a saved run instead of running anything")
    run.add_argument(
        "--guard",
        metavar="FILE",
        help="fail if the run does more a step than the saved ones (counts; on a GPU times too)",
    )
    run.add_argument("--no-ledger", action="store_true", help="keep no prediction of this run (see --ledger)")
    run.add_argument(
        "--perfetto", metavar="FILE", help="also write the run as a trace for Perfetto: device work, calls, our marks"
    )
    run.add_argument("--propagate-exit", action="store_true", help="exit with the profiled command's code")

    llm = parser.add_argument_group("advice of a language model (off by default; nothing is sent without --llm)")
    llm.add_argument("--llm", action="store_true", help="a jury on unsure findings, and patches where no rule has one")
    llm.add_argument("--llm-model", type=_names, metavar="NAMES", help="model, or several that take turns in the jury")
    llm.add_argument("--llm-base-url", metavar="URL", help="any OpenAI-compatible server, such as one of yours")
    llm.add_argument("--llm-dry-run", action="store_true", help="print what would be sent, send nothing")
    llm.add_argument("--llm-votes", type=_count, metavar="N", help="jurors a finding (3)")
    llm.add_argument("--llm-patches", type=_count, metavar="N", help="most patches that are asked for (3; 0: none)")
    llm.add_argument("--llm-max-calls", type=_count, metavar="N", help="most requests (40)")
    llm.add_argument("--llm-max-tokens", type=_count, metavar="N", help="most tokens, in and out (200000)")
    llm.add_argument("--llm-max-seconds", type=_count, metavar="S", help="most seconds, all requests together (180)")

    target = parser.add_argument_group("what the code will run on")
    target.add_argument("--target-torch", type=_version, metavar="X.Y")
    target.add_argument("--target-transformers", type=_version, metavar="X.Y")
    target.add_argument("--target-device", choices=DEVICES)

    scan = parser.add_argument_group("scan")
    scan.add_argument("--jobs", type=_jobs, metavar="N", help="worker processes (default: one a core)")
    scan.add_argument("--no-cache", action="store_true")
    scan.add_argument("--config", type=Path, metavar="FILE", help="settings file instead of the nearest pyproject.toml")
    scan.add_argument("--isolated", action="store_true", help="no settings file at all")

    editing = parser.add_argument_group("while writing code")
    editing.add_argument("--watch", action="store_true", help="report again whenever a file changes")
    editing.add_argument("--lsp", action="store_true", help="language server on standard input and output, for editors")

    info = parser.add_argument_group("help")
    info.add_argument("--explain", metavar="ID", help="the page of one rule")
    info.add_argument(
        "--explain-metric", nargs="?", const="", metavar="NAME", help="what a number of the report means (alone: all)"
    )
    info.add_argument("--explain-finding", metavar="FILE:LINE", help="the full reasoning behind the findings at a line")
    info.add_argument("--ledger", action="store_true", help="how well predictions on this machine came true")
    info.add_argument("--list-rules", action="store_true", help="every rule (with --format json: as JSON)")
    info.add_argument("--show-files", action="store_true", help="the files that would be scanned")
    info.add_argument("--show-settings", action="store_true", help="the settings in force")
    info.add_argument("--version", action="version", version=f"awp-lint {__version__}")
    info.add_argument("-h", "--help", action="help", help="this text")
    return parser


def check_combinations(options: argparse.Namespace, command: Sequence[str] | None) -> None:
    """Refuse what cannot be meant. Raises :class:`UsageError`."""
    if command is not None and options.format != "text" and options.output is None:
        raise UsageError(
            f"with --profile standard output belongs to the program: give --output FILE with --format {options.format}"
        )
    for name in ("compare", "from_report"):
        if getattr(options, name) is not None and options.format != "html":
            raise UsageError(f"--{name.replace('_', '-')} goes with --format html")
    if options.from_report is not None and (command is not None or options.attach is not None or options.paths):
        raise UsageError("--from-report shows a report that was kept: without paths, --profile and --attach")
    runs = (command, options.attach, options.trace, options.from_report)
    for name in ("ncu", "memory_snapshot"):
        if getattr(options, name) is not None and all(given is None for given in runs):
            option = name.replace("_", "-")
            raise UsageError(f"--{option} adds to a run: give it --profile, --attach, --trace or --from-report")
    if options.compare is not None:  # a file that is none must not cost a whole run
        from awp_lint.detector.reporting.html.page import load as load_report

        load_report(options.compare)
    if options.ncu is not None:
        from awp_lint.detector.profiling.ncu import load as load_counters

        load_counters(options.ncu)
    if options.memory_snapshot is not None:
        from awp_lint.detector.profiling.snapshot import load as load_snapshot

        load_snapshot(options.memory_snapshot)
    if options.format == "html" and options.statistics:
        raise UsageError("--statistics counts for a terminal: without --format html")
    if options.watch and (command is not None or options.fix or options.diff or options.output is not None):
        raise UsageError("--watch reports on the terminal: without --profile, --fix, --diff and --output")
    if not options.llm:
        for name in (
            "model", "base_url", "dry_run", "votes", "patches", "max_calls", "max_tokens", "max_seconds",
        ):  # fmt: skip
            if getattr(options, f"llm_{name}") not in (None, False):
                raise UsageError(f"--llm-{name.replace('_', '-')} goes with --llm")
    elif options.watch or options.lsp or options.write_baseline is not None:
        raise UsageError("--llm goes with none of --watch, --lsp and --write-baseline")
    if options.llm_dry_run and command is not None:
        raise UsageError("--llm-dry-run sends and runs nothing: without --profile")
    if options.write_ignores is not None:
        if not options.write_ignores.strip():
            raise UsageError("--write-ignores needs the reason that a reader of the code will see")
        if command is not None or options.fix or options.diff or options.watch or options.write_baseline is not None:
            raise UsageError("--write-ignores writes comments: without --profile, --fix, --diff and the like")
    if options.write_baseline is not None:
        if command is not None or options.fix or options.diff or options.changed or options.changed_from is not None:
            raise UsageError("--write-baseline notes what a scan of everything finds: give it alone")
        if options.baseline is not None:
            raise UsageError("--baseline reads what is known and --write-baseline writes it: give one of them")
    if options.diff and options.fix:
        raise UsageError("--diff shows and --fix writes: give one of them")
    if options.patch_dir is not None and (options.diff or options.fix):
        raise UsageError("--patch-dir writes patches, --diff shows and --fix applies them: give one of them")
    if options.unsafe_fixes and not (options.diff or options.fix or options.patch_dir is not None):
        raise UsageError("--unsafe-fixes goes with --diff, --fix or --patch-dir")
    if options.load is not None and options.load_url is not None:
        raise UsageError("--load runs a load of yours and --load-url sends one of ours: give one of them")
    if options.load_url is None and (options.rate is not None or options.load_body):
        raise UsageError("--rate and --load-body go with --load-url")
    if options.attach is not None and command is not None:
        raise UsageError("--profile starts a program and --attach profiles one that runs: give one of them")
    if command is None and options.attach is None:
        if options.include_deps:
            raise UsageError("--include-deps takes in what runs hot in libraries: give it --profile CMD or --attach")
        for name in ("census", "memory"):
            if getattr(options, name):
                raise UsageError(f"--{name} needs a run: give it --profile CMD or --attach")
    if options.trace is not None and (command is not None or options.attach is not None):
        raise UsageError("--trace reads evidence made elsewhere: give it, --profile or --attach")
    if options.verify and command is None:
        raise UsageError("--verify measures patches in a running program: give it --profile CMD")
    for name in ("save_profile", "guard"):
        if getattr(options, name) is not None and command is None:
            raise UsageError(f"--{name.replace('_', '-')} needs a run: give it --profile CMD")
    if options.perfetto is not None:
        if command is None:
            raise UsageError("--perfetto needs a run: give it --profile CMD")
        if not Path(options.perfetto).resolve().parent.is_dir():
            raise UsageError(f"--perfetto {options.perfetto}: its folder does not exist")
    if options.use_profile is not None and (
        command is not None or options.attach is not None or options.trace is not None
    ):
        raise UsageError("--use-profile takes prices from a file: give it, --profile, --attach or --trace")
    for name in ("guard", "use_profile"):
        if getattr(options, name) is not None:
            from awp_lint.detector.verification.saved import load

            load(getattr(options, name))
    if options.guard is not None and (options.fix or options.diff):
        raise UsageError("--guard reports: it goes with neither --fix nor --diff")
    if options.budget is not None and not options.verify:
        raise UsageError("--budget goes with --verify")
    if command is None:
        alone = (
            ("ready_url", "ready_port")
            if options.attach is not None
            else ("ready_url", "ready_port", "load", "load_url")
        )
        for name in alone:
            if getattr(options, name) is not None:
                raise UsageError(f"--{name.replace('_', '-')} goes with --profile")
    if options.load_url is not None or options.ready_url is not None:
        from awp_lint.detector.profiling.httpload import read_bodies
        from awp_lint.detector.profiling.ready import split_url

        for name in ("ready_url", "load_url"):
            if getattr(options, name) is not None:
                split_url(getattr(options, name), f"--{name.replace('_', '-')}")
        read_bodies(options.load_body)
    if options.warmup != "auto":
        try:
            if float(options.warmup) < 0:
                raise ValueError
        except ValueError:
            raise UsageError(f"--warmup takes auto or seconds, not {options.warmup!r}") from None
