"""A scan with a bar for whoever waits for it."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from awp_lint.detector.config import Settings

if TYPE_CHECKING:
    from awp_lint.detector.scan import ScanResult


def scan_shown(options: argparse.Namespace, settings: Settings) -> ScanResult:
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
