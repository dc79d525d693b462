"""``--watch``: the report on the terminal, made anew whenever a file changes."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence

from awp_lint.detector.config import Settings
from awp_lint.detector.project.files import find_files

_PAUSE = 0.5  # seconds between looks at the files

Seen = dict[str, tuple[int, int]]


def snapshot(paths: Sequence[str], settings: Settings) -> Seen:
    """What tells of a change: time and size of each file that a scan would take."""
    found, _ = find_files(paths, settings, os.getcwd())
    seen: Seen = {}
    for file in found:
        try:
            status = os.stat(file.real)
        except OSError:
            continue
        seen[file.real] = (status.st_mtime_ns, status.st_size)
    return seen


def watch(
    paths: Sequence[str],
    settings: Callable[[], Settings],
    report: Callable[[Settings], int],
    pause: Callable[[float], None] = time.sleep,
) -> int:
    """Report, wait for a change, report again, until Ctrl-C. ``settings`` are read anew each time.

    The exit code is that of the last report.
    """
    code = 0
    try:
        while True:
            current = settings()
            before = snapshot(paths, current)
            if sys.stdout.isatty():
                sys.stdout.write("\x1b[2J\x1b[H")
            code = report(current)
            print(f"{time.strftime('%H:%M:%S')} watching {len(before)} files; Ctrl-C ends", file=sys.stderr)
            while snapshot(paths, current) == before:
                pause(_PAUSE)
    except KeyboardInterrupt:
        return code
