"""Every rewrite that some real files get, on the files as they are and in other people's layouts.

The files are a fixed sample of the installed torch's own sources: code by many hands that no rule was written for. All
findings count, at whatever confidence, since their rewrites have to be right just the same.
"""

from __future__ import annotations

import ast
import random
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.finding import Finding
from awp_lint.detector.project.source import Source
from awp_lint.detector.semantics.model import view_of_source
from awp_lint.patches.plan import plan_file
from awp_lint.rules.engine import run_rules
from awp_lint.rules.registry import all_rules

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

FILES = 14
_PARTS = ("nn", "optim", "distributions", "ao", "utils", "distributed", "masked", "nested", "testing", "_refs")
_WORDS = (".item()", ".tolist()", ".nonzero(", ".cpu()", "torch.tensor(", "arange(", ".any()", ".all()")


def sample() -> list[Path]:
    """A fixed choice of files of middling size that work with tensors."""
    root = Path(torch.__file__).parent
    found = [
        path
        for part in _PARTS
        for path in sorted((root / part).rglob("*.py"))
        if 3_000 < path.stat().st_size < 40_000
        and sum(path.read_text(encoding="utf-8").count(word) for word in _WORDS) >= 6
    ]
    return random.Random(11).sample(found, min(FILES, len(found)))


def fixes(text: str, path: str) -> list[Finding]:
    run = run_rules(view_of_source(text, path=path), all_rules())
    assert not run.problems, run.problems
    return [finding for finding in run.findings if finding.fix is not None and finding.fix.edits]


def check(source: Source, found: list[Finding]) -> list[str]:
    """The text after each fix alone; every one is Python, and outside its edits nothing moves."""
    results = []
    for finding in found:
        patch = plan_file(source, [finding])  # refuses what is not Python, and overlaps
        assert patch.after != source.text
        assert finding.fix is not None
        position = 0
        rest = patch.after
        for edit in sorted(finding.fix.edits, key=lambda e: (e.start, e.end)):
            kept = source.text[position : edit.start]
            at = rest.find(kept) if not finding.fix.imports else 0
            assert finding.fix.imports or at == 0, f"{finding.rule} moves what it does not edit"
            rest = rest[len(kept) + len(edit.replacement) :] if not finding.fix.imports else rest
            position = edit.end
        assert finding.fix.imports or rest == source.text[position:]
        results.append(patch.after)
    return results


@pytest.mark.parametrize("path", sample(), ids=lambda path: "/".join(path.parts[-3:]))
def test_layout_is_nobodys_business(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    plain = Source.decode("m.py", text.encode())
    found = fixes(text, "m.py")
    expected = check(plain, found)

    raw = "\ufeff" + text.replace("\n", "\r\n")
    windows = Source.decode("m.py", raw.encode())
    other = fixes(windows.text, "m.py")
    assert [f.rule for f in other] == [f.rule for f in found]
    for after, wanted in zip(check(windows, other), expected, strict=True):
        assert after.count("\n") == after.count("\r\n"), "line endings are kept, in new lines too"
        assert after.replace("\r\n", "\n") == wanted
        assert windows.encode(after).startswith(b"\xef\xbb\xbf")


@pytest.mark.parametrize("path", sample()[:4], ids=lambda path: "/".join(path.parts[-3:]))
def test_form_feeds_and_tabs(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    fed = text.replace("\nclass ", "\n\x0cclass ").replace("\ndef ", "\n\x0cdef ")
    found = fixes(fed, "m.py")
    assert [f.rule for f in found] == [f.rule for f in fixes(text, "m.py")]
    for after in check(Source.decode("m.py", fed.encode()), found):
        assert after.count("\x0c") == fed.count("\x0c")
    tabbed = "".join(
        "\t" * ((len(line) - len(line.lstrip(" "))) // 4) + line.lstrip(" ") if "    " in line[:4] else line
        for line in text.splitlines(keepends=True)
    )
    try:
        ast.parse(tabbed)
    except SyntaxError:
        pytest.skip("its continuation lines do not stand tabs")
    check(Source.decode("m.py", tabbed.encode()), fixes(tabbed, "m.py"))


def test_the_sample_is_worth_it() -> None:
    counts = [len(fixes(path.read_text(encoding="utf-8"), "m.py")) for path in sample()]
    assert sum(counts) >= 5, "a sample without rewrites tests nothing"


@pytest.mark.parametrize("path", sample()[:6], ids=lambda path: "/".join(path.parts[-3:]))
def test_all_fixes_together_settle(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    for _ in range(8):
        found = fixes(text, "m.py")
        if not found:
            return
        text = plan_file(Source.decode("m.py", text.encode()), found).after
    pytest.fail(f"still to do: {[(f.rule, f.line) for f in found]}")
