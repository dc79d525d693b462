"""The ``awp-lint-bot`` command: so far its help, which says what to use instead."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from awp_lint import __version__


def main(argv: Sequence[str] | None = None) -> int:
    """Print help; exit 2 for anything that asks for more than this release can do."""
    parser = argparse.ArgumentParser(
        prog="awp-lint-bot",
        description="awp-lint as comments on a pull request. This release does not post comments yet: "
        "run awp-lint --format json in the job and keep the report as an artifact.",
    )
    parser.add_argument("--version", action="version", version=f"awp-lint-bot {__version__}")
    parser.parse_args(argv)
    parser.print_help()
    return 2
