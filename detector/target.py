"""The versions that the scanned project asks for: from its own requirement files, never from what is installed here.

The oldest version that the project allows decides, since a patch must run there too.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from awp_lint.detector.semantics.view import Target

_REQUIREMENT = re.compile(
    r"""(?<![\w.-])(torch|transformers)\s*(?:\[[^\]]*\])?\s*\(?\s*(===?|~=|>=|>)\s*v?(\d+)\.(\d+)""", re.IGNORECASE
)
_LOCKED = re.compile(r"""name\s*=\s*"(torch|transformers)"\s*\n\s*version\s*=\s*"(\d+)\.(\d+)""")
_FILES = ("pyproject.toml", "setup.cfg", "setup.py", "requirements.txt", "requirements/*.txt", "requirements-*.txt")
_LOCKS = ("uv.lock", "poetry.lock", "pdm.lock")
_LIMIT = 4 * 1024 * 1024  # bytes read of one file: lock files of big projects stay below


def _texts(folder: Path, patterns: tuple[str, ...]) -> Iterator[str]:
    for pattern in patterns:
        for path in sorted(folder.glob(pattern)):
            try:
                with path.open("rb") as stream:
                    yield stream.read(_LIMIT).decode("utf-8", "replace")
            except OSError:
                continue


def project_target(folder: Path) -> Target:
    """What the requirement files in ``folder`` ask for; lock files win, None where nothing is said."""
    found: dict[str, tuple[int, int]] = {}
    for text in _texts(folder, _FILES):
        for name, _, major, minor in _REQUIREMENT.findall(text):
            version = (int(major), int(minor))
            found[name.lower()] = min(version, found.get(name.lower(), version))
    for text in _texts(folder, _LOCKS):
        for name, major, minor in _LOCKED.findall(text):
            found[name] = (int(major), int(minor))
    return Target(torch=found.get("torch"), transformers=found.get("transformers"))
