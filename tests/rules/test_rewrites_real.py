"""Every rewrite that some real files get, on the files as they are and in other people's layouts.

The files are a fixed sample of the installed torch's own sources: code by many hands that no rule was written for. All
findings count, at whatever confidence, since their rewrites have to be right just the same. The checks are those of the
script that goes through more files.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from awp_lint.detector.finding import Edit, Import
from awp_lint.rules.memory.awp602 import CreateThenMove

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

_PARTS = ("nn", "optim", "distributions", "ao", "utils", "distributed", "masked", "nested", "testing", "_refs")


def _load() -> ModuleType:
    path = Path(__file__).resolve().parents[2] / "benchmarks" / "patches" / "layouts.py"
    spec = importlib.util.spec_from_file_location("patches_layouts", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


layouts = _load()
SAMPLE = layouts.sample([Path(torch.__file__).parent / part for part in _PARTS], 6, 11)


@pytest.mark.parametrize("path", SAMPLE, ids=lambda path: "/".join(path.parts[-3:]))
def test_layout_is_nobodys_business(path: Path) -> None:
    assert layouts.wrong(path.read_text(encoding="utf-8"))[0] == []


def test_the_sample_is_worth_it() -> None:
    counts = [len(layouts.fixes(path.read_text(encoding="utf-8"))) for path in SAMPLE]
    assert sum(counts) >= 5, "a sample without rewrites tests nothing"


def test_what_an_edit_leaves_alone_is_compared() -> None:
    text = "import os\n\nx = a.item()\ny = b\n"
    finding = layouts.fixes(textwrap.dedent(CreateThenMove.bad))[0]
    at = text.index("a.item()")
    made = dataclasses.replace(finding.fix, edits=(Edit(at, at + 8, "c"),), imports=())
    fixed = text.replace("a.item()", "c")
    assert layouts.untouched(text, fixed, dataclasses.replace(finding, fix=made))
    assert not layouts.untouched(text, fixed.replace("y = b", "y = d"), dataclasses.replace(finding, fix=made))
    assert not layouts.untouched(text, f"import re\n{fixed}", dataclasses.replace(finding, fix=made))
    more = dataclasses.replace(made, imports=(Import("re"),))
    assert layouts.untouched(text, fixed.replace("os\n", "os\nimport re\n"), dataclasses.replace(finding, fix=more))
