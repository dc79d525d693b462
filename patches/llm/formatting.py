"""Code of a model in the project's format, where the project is formatted by ruff and ruff is at hand."""

from __future__ import annotations

import difflib
import os
import shutil
import subprocess

from awp_lint.detector.finding import Edit
from awp_lint.detector.project.source import Source

_SECONDS = 10


def formatted(source: Source, patched: str) -> str:
    """The patched text, formatted if the text before was as ruff would have it; else as it is."""
    ruff = shutil.which("ruff")
    if ruff is None or _run(ruff, source, source.text) != source.text:
        return patched
    return _run(ruff, source, patched) or patched


def _run(ruff: str, source: Source, text: str) -> str | None:
    path = os.path.abspath(source.path)
    command = [ruff, "format", "--quiet", "--no-cache", "--stdin-filename", path, "-"]
    try:
        done = subprocess.run(
            command, input=text.encode(), capture_output=True, timeout=_SECONDS, check=True, cwd=os.path.dirname(path)
        )
        return done.stdout.decode()
    except (OSError, subprocess.SubprocessError, UnicodeError):
        return None


def line_edits(source: Source, after: str) -> tuple[Edit, ...]:
    """The edits by whole lines that turn the source into ``after``."""
    old, new = source.text.splitlines(keepends=True), after.splitlines(keepends=True)
    starts = [0]
    for line in old:
        starts.append(starts[-1] + len(line))
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    return tuple(
        Edit(starts[i1], starts[i2], "".join(new[j1:j2]))
        for tag, i1, i2, j1, j2 in matcher.get_opcodes()
        if tag != "equal"
    )
