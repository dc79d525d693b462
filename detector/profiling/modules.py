"""Module names of files."""

from __future__ import annotations

from pathlib import Path


def module_of(path: str) -> str:
    """The dotted module name that a file has by the packages it lies in."""
    file = Path(path)
    parts = [] if file.stem == "__init__" else [file.stem]
    folder = file.parent
    while (folder / "__init__.py").is_file() and folder != folder.parent:
        parts.append(folder.name)
        folder = folder.parent
    return ".".join(reversed(parts))
