"""Notebooks as Python source: the code cells one after another, with the way back to cell and line."""

from __future__ import annotations

import ast
import json
import re
import warnings
from dataclasses import dataclass

from awp_lint.detector.project.source import SourceError

_MAGIC = re.compile(r"\s*(?=[%!?])|\s*(?=[\w.\[\]]+\?{1,2}\s*$)")
_ASSIGNED_MAGIC = re.compile(r"(\s*[\w., ]+=\s*)(?=[%!])")
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
    errors: tuple[tuple[CellLine, str], ...] = ()  # cells that are no Python, and blank in ``text``


def read_notebook(raw: bytes) -> Notebook:
    """Parse a notebook. Raises :class:`SourceError` when it is none.

    Magics and shell lines do nothing and cells of other languages or with errors are blank, so that line numbers hold.
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
    errors: list[tuple[CellLine, str]] = []
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "code":
            continue
        source = cell.get("source", "")
        body = "".join(source) if isinstance(source, list) else str(source)
        code = _python_lines(body.splitlines())
        fault = _fault("\n".join(code))
        if fault is not None:
            errors.append((CellLine(number, fault[0]), fault[1]))
            code = [""] * len(code)
        text += code
        lines += [CellLine(number, index) for index in range(1, len(code) + 1)]
    return Notebook("\n".join(text) + "\n", tuple(lines), tuple(errors))


def _fault(code: str) -> tuple[int, str] | None:
    """Line and message of what keeps a cell from being parsed."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            compile(code, "<cell>", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, dont_inherit=True)
        except SyntaxError as error:
            return error.lineno or 1, f"syntax error: {error.msg}"
        except (RecursionError, MemoryError, ValueError):
            return 1, "nested too deeply to be parsed"
    return None


def _python_lines(lines: list[str]) -> list[str]:
    first = next((line for line in lines if line.strip()), "")
    magic = _CELL_MAGIC.match(first)
    if magic is not None and magic.group(1) not in _PYTHON_CELL_MAGICS:
        return [""] * len(lines)
    return [_python(line) for line in lines]


def _python(line: str) -> str:
    """The line as Python of the same length in lines: magics do nothing, what they assign is None."""
    magic = _MAGIC.match(line)
    if magic is not None:
        return f"{magic.group()}pass  # {line[magic.end() :]}"
    assigned = _ASSIGNED_MAGIC.match(line)
    return line if assigned is None else f"{assigned.group()}None  # {line[assigned.end() :]}"
