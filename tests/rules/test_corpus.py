"""Every corpus file gives what its comments ask for, and every fix what its ``fixed_`` file holds."""

from __future__ import annotations

import ast
import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

from awp_lint.rules.registry import all_rules

ROOT = Path(__file__).resolve().parents[2]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("precision_corpus", ROOT / "benchmarks/precision/corpus.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


corpus = _load()


def _name(path: Path) -> str:
    return f"{path.parent.name}/{path.stem}"


@pytest.mark.parametrize("path", corpus.paths(), ids=_name)
def test_expectations(path: Path) -> None:
    assert corpus.check(path).wrong == []


FIXED = sorted(corpus.CORPUS.glob("AWP*/fixed_*.py"))


@pytest.mark.parametrize("fixed", FIXED, ids=_name)
def test_fix(fixed: Path) -> None:
    rule = fixed.parent.name
    bad = fixed.with_name(fixed.name.replace("fixed_", "bad_"))
    text = bad.read_text(encoding="utf-8")
    result = corpus.apply_fixes(text, corpus.run(text, bad.name).findings, rule)
    assert corpus.plain(result) == corpus.plain(fixed.read_text(encoding="utf-8"))
    ast.parse(result)
    again = corpus.apply_fixes(result, corpus.run(result, bad.name).findings, rule)
    assert again == result, "a fix applied twice changes nothing more"


@pytest.mark.parametrize("rule", all_rules(), ids=lambda rule: rule.id)
def test_there_are_bads_and_at_least_as_many_look_alikes(rule: object) -> None:
    names = [path.name for path in corpus.paths(rule.id)]  # type: ignore[attr-defined]
    bad = sum(name.startswith("bad_") for name in names)
    assert bad and len(names) - bad >= bad
