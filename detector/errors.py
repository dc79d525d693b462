"""Exit codes, and errors that end the command with one line for a person and exit code 2."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from awp_lint.detector.finding import Problem

EXIT_CLEAN, EXIT_FINDINGS, EXIT_ERROR = 0, 1, 2


class UsageError(Exception):
    """Wrong use: an unknown option value, a broken settings file, a command that could not start."""


def exit_code(options: argparse.Namespace, counted: int, problems: Iterable[Problem]) -> int:
    """Of a run with so many findings that count."""
    if any(problem.fatal for problem in problems):
        return EXIT_ERROR
    return EXIT_FINDINGS if counted and not options.exit_zero else EXIT_CLEAN
