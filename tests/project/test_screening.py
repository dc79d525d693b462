"""Files that have to do with model code, told from their bytes."""

from __future__ import annotations

import pytest

from awp_lint.detector.project.screening import Screened, imported_names, in_scope, is_model_code


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (b"import torch\n", True),
        (b"from transformers import pipeline", True),
        (b"x = 'cuda'", True),
        (b"import torchless_thing", False),
        (b"import json", False),
    ],
)
def test_model_code(raw: bytes, expected: bool) -> None:
    assert is_model_code(raw) is expected


def test_imported_names() -> None:
    raw = b"import a.b, c as d\nfrom e.f import g, h as i\n  from . import j\nfrom .k import *\nx = 'import z'\n"
    assert {"b", "c", "f", "g", "h", "j", "k"} <= imported_names(raw)
    assert "z" not in imported_names(raw)


def test_scope_goes_both_ways_and_no_further() -> None:
    files = [
        Screened("handlers", False, frozenset({"service"})),  # imports what imports model code
        Screened("service", False, frozenset({"model"})),
        Screened("model", True, frozenset({"shapes"})),
        Screened("shapes", False, frozenset()),  # is imported by model code
        Screened("billing", False, frozenset({"shapes"})),  # imports the same as model code does
        Screened("alone", False, frozenset()),
    ]
    assert in_scope(files) == {0, 1, 2, 3}
    assert in_scope([files[5]]) == set()
    assert in_scope([files[2]]) == {0}
