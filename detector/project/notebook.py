"""Notebooks as Python source: the code cells one after another, with the way back to cell and line."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from awp_lint.detector.project.source import SourceError

_MAGIC = re.compile(r"^(\s*)(?=[%!?])|^(\s*)(?=[\w.\[\]]+\?{1,2}\s*$)")
_CELL_MAGIC = re.compile(r"^\s*%%\s*(\w+)")
_PYTHON_CELL_MAGICS = frozenset(("time", "timeit", "capture", "prun", "python", "python3", "px"))


@dataclass(frozen=True, slots=True)
class CellLine:
    """A line of the joined source: the 1-based number of the cell (all kinds counted) and the line in it."""

    cell: int
    line: int


@dataclass(frozen=True, slots=True)
class Notebook:
    """The joined code of a notebook. ``lines[i]`` is where line ``i + 1`` of ``text`` comes from."""

    text: str
    lines: tuple[CellLine, ...]


def read_notebook(raw: bytes) -> Notebook:
    """Parse a notebook. Raises :class:`SourceError` when it is none.

    Magics and shell lines become comments and cells of other languages are blank, so that line numbers hold.
    """
    try:
        content = json.loads(raw)
        cells = content["cells"]
        if not isinstance(cells, list):
            raise TypeError
    except (ValueError, KeyError, TypeError, RecursionError):
        raise SourceError("not a notebook: no list of cells") from None
    text: list[str] = []
    lines: list[CellLine] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        body = "".join(source) if isinstance(source, list) else str(source)
        for index, line in enumerate(_python_lines(body.splitlines()), 1):
            text.append(line)
            lines.append(CellLine(number, index))
        if body:
            text.append("")  # an open statement at a cell's end stays an error of that cell
            lines.append(CellLine(number, len(body.splitlines())))
    return Notebook("\n".join(text) + "\n", tuple(lines))


def _python_lines(lines: list[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    magic = _CELL_MAGIC.match(first)
    if magic is not None and magic.group(1) not in _PYTHON_CELL_MAGICS:
        return [""] * len(lines)
    return [_MAGIC.sub(lambda m: f"{m.group(0)}pass  # ", line) if _MAGIC.match(line) else line for line in lines]
