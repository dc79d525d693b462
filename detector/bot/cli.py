"""The ``awp-lint-bot`` command: which change, on which host, with which token.

Tokens come from the environment alone, never from the command line, where every process of the machine can read them,
and everything that is printed passes through a filter that knows them.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from awp_lint import __version__
from awp_lint.detector.bot.host import BotError, Host
from awp_lint.detector.bot.inert import visible
from awp_lint.detector.errors import EXIT_CLEAN, EXIT_ERROR, EXIT_FINDINGS, UsageError

LEVELS = ("never", "low", "medium", "high", "confirmed")
_TOKENS = {
    "github": ("AWP_LINT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN"),
    "gitlab": ("AWP_LINT_TOKEN", "GITLAB_TOKEN"),
}
_SECRETS = ("AWP_LINT_TOKEN", "GITHUB_TOKEN", "GH_TOKEN", "GITLAB_TOKEN", "CI_JOB_TOKEN")


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message)


@dataclass(frozen=True, slots=True)
class Where:
    """Which change."""

    host: str
    repository: str
    number: int
    base_url: str


def build_parser() -> argparse.ArgumentParser:
    """The command line."""
    parser = _Parser(
        prog="awp-lint-bot",
        usage="awp-lint-bot [PATH…] [options]",
        description="awp-lint as comments on a pull or merge request: new findings on the lines it writes, in one "
        "review, and one summary that is kept up to date. The change's code is read, never run.",
        epilog="The token comes from AWP_LINT_TOKEN, or GITHUB_TOKEN, GH_TOKEN, GITLAB_TOKEN. In GitHub Actions and "
        "GitLab CI the change is known. Exit code: 0, 1 with findings at or above --fail-on, 2 for an error; running "
        "again is always safe.",
        allow_abbrev=False,
    )
    add = parser.add_argument
    add("paths", nargs="*", metavar="PATH", help="folders or files below the repository's root (default: all of it)")
    add("--host", choices=("github", "gitlab"), help="default: what the CI system is")
    add("--repo", metavar="OWNER/NAME", help="the repository that the change goes to")
    add("--pr", type=_number, metavar="N", help="number of the pull or merge request")
    add("--base-url", metavar="URL", help="of the API: GitHub Enterprise https://HOST/api/v3, GitLab https://HOST")
    add("--folder", default=".", metavar="DIR", help="a clone of the repository (default: the current folder)")
    add("--evidence", metavar="FILE", help="prices: a report made with --format json --output FILE --profile …")
    add(
        "--evidence-untrusted",
        action="store_true",
        help="the change's own job made it: it adds prices, and takes no finding away (always so for forks)",
    )
    add("--baseline", metavar="FILE", help="known findings, read from the merge base (.awp-lint-baseline.json)")
    add("--max-comments", type=_count, default=10, metavar="N", help="open review comments at most (default: 10)")
    add("--fail-on", choices=LEVELS, default="never", help="exit 1 for new findings of at least this level")
    add("--no-check", action="store_true", help="no check run with annotations (GitHub)")
    add("--login", metavar="NAME", help="whose comments are ours (default: the token's user)")
    add("--dry-run", action="store_true", help="write nothing, print what would be said")
    add("--version", action="version", version=f"awp-lint-bot {__version__}")
    return parser


def _number(text: str) -> int:
    if not text.isdigit() or not 0 < int(text) < 10**9:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of a pull request")
    return int(text)


def _count(text: str) -> int:
    if not text.isdigit() or int(text) > 200:
        raise argparse.ArgumentTypeError(f"{text!r} is no number of comments up to 200")
    return int(text)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command and return its exit code; every error is one line on standard error."""
    try:
        return _main(argv)
    except (BotError, UsageError) as error:
        return _fail(str(error))
    except KeyboardInterrupt:
        print("awp-lint-bot: interrupted; running again is safe", file=sys.stderr)
        return 130
    except ImportError as error:
        return _fail(f"{error.name} is missing: pip install 'awp-lint[bot]'")
    except Exception as error:  # no traceback: its frames may hold the token
        return _fail(f"internal error: {type(error).__name__}: {error}")


def _fail(message: str) -> int:
    print(f"awp-lint-bot: {_safe(message)}", file=sys.stderr)
    return EXIT_ERROR


def _safe(text: str) -> str:
    """One line that shows no token, and that neither a terminal nor a CI system takes for a command."""
    line = " ".join(visible(text).split())
    for name in _SECRETS:
        secret = os.environ.get(name, "")
        if len(secret) >= 4:
            line = line.replace(secret, "***")
    return line.replace("::", ": :").replace("##[", "## [")


def _main(argv: Sequence[str] | None) -> int:
    options = build_parser().parse_args(argv)
    where = find_change(options, os.environ)
    for path in options.paths:
        if os.path.isabs(path) or ".." in Path(path).parts:
            raise UsageError(f"{path}: paths are below the repository's root")
    host = connect(where, options, os.environ)
    prices = None
    if options.evidence is not None:
        from awp_lint.detector.reporting import evidence_file

        prices = evidence_file.read(options.evidence)
    from awp_lint.detector.bot.run import Wish, run

    wish = Wish(
        folder=options.folder,
        paths=tuple(options.paths) or (".",),
        baseline=options.baseline,
        evidence=prices,
        trust_evidence=not options.evidence_untrusted,
        most=options.max_comments,
        fail_on=options.fail_on,
        check=not options.no_check,
        dry=options.dry_run,
    )
    done = run(host, wish)
    for line in done.lines:
        print(_safe(line))
    _job_summary(done.summary, os.environ)
    return EXIT_FINDINGS if done.failed else EXIT_CLEAN


def connect(where: Where, options: argparse.Namespace, environment: Mapping[str, str]) -> Host:
    """The host of a change. Raises :class:`UsageError` without a token."""
    token = next((environment[name] for name in _TOKENS[where.host] if environment.get(name)), None)
    if token is None:
        raise UsageError(f"no token: set {' or '.join(_TOKENS[where.host])} in the environment")
    if where.host == "gitlab":
        from awp_lint.detector.bot.gitlab import GitLab

        return GitLab(where.repository, where.number, token, where.base_url)
    from awp_lint.detector.bot.github import GitHub

    return GitHub(where.repository, where.number, token, where.base_url, options.login)


def find_change(options: argparse.Namespace, environment: Mapping[str, str]) -> Where:
    """The change from options, else from what the CI system says. Raises :class:`UsageError` where neither does."""
    host = options.host or ("gitlab" if environment.get("GITLAB_CI") else "github")
    if host == "gitlab":
        repository = options.repo or environment.get("CI_PROJECT_PATH", "")
        number = options.pr or _positive(environment.get("CI_MERGE_REQUEST_IID"))
        base_url = options.base_url or environment.get("CI_SERVER_URL") or "https://gitlab.com"
    else:
        repository = options.repo or environment.get("GITHUB_REPOSITORY", "")
        base_url = options.base_url or environment.get("GITHUB_API_URL") or "https://api.github.com"
        number = options.pr or _from_event(_event(environment), repository, base_url, environment)
    if not repository:
        raise UsageError("which repository? give --repo OWNER/NAME")
    if not number:
        raise UsageError("which pull request? give --pr N")
    if not base_url.startswith(("https://", "http://")):
        raise UsageError(f"--base-url takes a URL, not {base_url!r}")
    return Where(host, repository, number, base_url)


def _positive(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit():
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value > 0 else None


def _event(environment: Mapping[str, str]) -> dict[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH")
    if not path:
        return {}
    try:
        event = json.loads(Path(path).read_bytes())
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: the event cannot be read: {error}") from None
    return event if isinstance(event, dict) else {}


def _from_event(event: Mapping[str, Any], repository: str, base_url: str, environment: Mapping[str, str]) -> int | None:
    """The pull request that an event of GitHub Actions is about: its own, a comment's, or a finished run's."""
    run = event.get("workflow_run")
    if isinstance(run, dict):
        from awp_lint.detector.bot.workflow import pull_of_run

        token = next((environment[name] for name in _TOKENS["github"] if environment.get(name)), "")
        return pull_of_run(run, repository, base_url, token)
    issue = event.get("issue")
    if isinstance(issue, dict):
        return _positive(issue.get("number")) if "pull_request" in issue else None
    pull = event.get("pull_request")
    return _positive(pull.get("number")) if isinstance(pull, dict) else None


def _job_summary(text: str, environment: Mapping[str, str]) -> None:
    path = environment.get("GITHUB_STEP_SUMMARY")
    if path:
        with open(path, "a", encoding="utf-8") as stream:
            stream.write(text + "\n")
