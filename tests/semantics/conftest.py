"""Small projects, linked from source texts; and lets the tests of this folder import ``heated``."""

from __future__ import annotations

import ast
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.semantics.extract import extract
from awp_lint.detector.semantics.index import IndexedFile
from awp_lint.detector.semantics.linked import Linked
from awp_lint.detector.semantics.names import FileNames
from awp_lint.detector.semantics.summaries import summarise_file

sys.path.insert(0, str(Path(__file__).parent))

Link = Callable[..., Linked]


@pytest.fixture
def link() -> Link:
    """``link({"pkg/a.py": source, …}, settings)``: the files, linked; modules by their paths."""

    def make(sources: dict[str, str], settings: Settings | None = None) -> Linked:
        files = []
        values = []
        for path, source in sources.items():
            text = textwrap.dedent(source)
            tree = ast.parse(text)
            facts = extract(tree, text)
            package = path.endswith("__init__.py")
            module = path.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            files.append(IndexedFile(path, path, module, package, facts))
            values.append(summarise_file(tree, FileNames(facts, module, package)))
        return Linked(files, values, settings or Settings())

    return make
