"""Notebooks as source, and the way back to cell and line."""

from __future__ import annotations

import ast
import json

import pytest

from awp_lint.detector.project.notebook import CellLine, read_notebook
from awp_lint.detector.project.source import SourceError


def notebook(*cells: tuple[str, str | list[str]]) -> bytes:
    return json.dumps({"cells": [{"cell_type": kind, "source": source} for kind, source in cells]}).encode()


def test_lines_lead_back_to_cells() -> None:
    made = read_notebook(notebook(("markdown", "# Title"), ("code", ["import torch\n", "x = 1"]), ("code", "y = x\n")))
    tree = ast.parse(made.text)
    places = [made.lines[node.lineno - 1] for node in tree.body]
    assert places == [CellLine(2, 1), CellLine(2, 2), CellLine(3, 1)]
    assert len(made.lines) == made.text.count("\n")


def test_magics_keep_their_lines() -> None:
    source = "%matplotlib inline\n!pip install torch\nx = %time f()\nif x:\n    !ls\ny = 2\nmodel?\n"
    made = read_notebook(notebook(("code", "%%time\na = 1"), ("code", "%%bash\nrm -rf /"), ("code", source)))
    tree = ast.parse(made.text)
    found = {ast.unparse(node): made.lines[node.lineno - 1] for node in tree.body}
    assert found["a = 1"] == CellLine(1, 2)
    assert found["y = 2"] == CellLine(3, 6)
    assert found["x = None"] == CellLine(3, 3)
    assert not any(place.cell == 2 for place in found.values())


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", b'{"cells": 3}', b"\xff\xfe"])
def test_what_is_no_notebook(raw: bytes) -> None:
    with pytest.raises(SourceError, match="not a notebook"):
        read_notebook(raw)


def test_a_broken_cell_costs_only_itself() -> None:
    made = read_notebook(notebook(("code", "a = 1"), ("code", "x = 1\nfor\n"), ("code", "b = await f()")))
    assert made.errors == ((CellLine(2, 2), "syntax error: invalid syntax"),)
    assert [line for line in made.text.splitlines() if line] == ["a = 1", "b = await f()"]
    assert made.lines[-1] == CellLine(3, 1)


def test_cells_without_source() -> None:
    assert read_notebook(json.dumps({"cells": [{"cell_type": "code"}, 3]}).encode()).text.strip() == ""
