from __future__ import annotations

import ast
from pathlib import Path

import pytest

from awp_lint.detector.finding import (
    Confidence,
    Edit,
    Evidence,
    Finding,
    Fix,
    Import,
    PredictedSaving,
    RootCause,
    Safety,
    Span,
    Verdict,
)
from awp_lint.detector.project.source import Source
from awp_lint.patches.imports import import_edits
from awp_lint.patches.plan import plan_file, plan_files
from awp_lint.patches.ranking import rank
from awp_lint.patches.splice import splice
from awp_lint.patches.write import WriteError, write_patch


def source(text: str, path: str = "m.py") -> Source:
    return Source.decode(path, text.encode())


def finding(rule: str = "AWP602", line: int = 1, fix: Fix | None = None, **more: object) -> Finding:
    values: dict[str, object] = {
        "id": f"{rule}-{line}",
        "rule": rule,
        "name": "n",
        "path": "m.py",
        "span": Span(line, 1, line, 2),
        "function": "f",
        "message": "m",
        "why": (),
        "root_cause": RootCause.MEMORY,
        "frequency": "request",
        "confidence": Confidence.MEDIUM,
        "fix": fix,
    }
    return Finding(**{**values, **more})  # type: ignore[arg-type]


def replace(text: str, old: str, new: str, safety: Safety = Safety.SAFE, title: str = "t") -> Fix:
    at = text.index(old)
    return Fix(title, safety, edits=(Edit(at, at + len(old), new),))


def test_bom_crlf_and_encoding_survive(tmp_path: Path) -> None:
    raw = "\ufeff# é\r\nx = 1\r\n".encode()
    path = tmp_path / "m.py"
    path.write_bytes(raw)
    src = Source.decode(str(path), raw)
    patch = plan_file(src, [finding(fix=replace(src.text, "1", "2"))])
    write_patch(patch)
    assert path.read_bytes() == "\ufeff# é\r\nx = 2\r\n".encode()


def test_clashing_fix_waits_for_the_next_pass() -> None:
    text = "x = f(g(1))\n"
    first, second = finding(fix=replace(text, "g(1)", "2")), finding("AWP101", fix=replace(text, "f(g(1))", "3"))
    patch = plan_file(source(text), [first, second])
    assert patch.after == "x = f(2)\n"
    assert patch.applied == (first,) and patch.postponed == (second,)


def test_a_rewrite_that_does_not_parse_is_refused() -> None:
    text = "x = 1\n"
    with pytest.raises(ValueError, match="AWP602 is not valid Python"):
        plan_file(source(text), [finding(fix=replace(text, "1", "("))])


def test_unsafe_suppressed_and_dependency_fixes_are_left_out() -> None:
    text = "x = 1\n"
    fix, unsafe = replace(text, "1", "2"), replace(text, "1", "2", Safety.UNSAFE)
    left_out = [finding(fix=unsafe), finding(fix=fix, suppressed=""), finding(fix=fix, origin="dependency")]
    assert plan_files(left_out, lambda path: source(text), unsafe=False) == []
    assert len(plan_files([finding(fix=unsafe)], lambda path: source(text), unsafe=True)) == 1
    assert plan_files([finding(fix=fix)], lambda path: source(text), unsafe=False, only=("AWP5",)) == []


def test_hunk_names_id_price_and_title() -> None:
    text = "x = 1\n"
    saving = PredictedSaving(0.5, 2.0, 0.0, 2.0, "a")
    evidence = Evidence(Verdict.CONFIRMED, "r", predicted_saving=saving)
    patch = plan_file(source(text), [finding(fix=replace(text, "1", "2", title="make it two"), evidence=evidence)])
    assert "@@ AWP602 · saves at most 2.0 % · make it two\n" in patch.diff


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("import torch\n\nx = 1\n", "import torch\nimport torch.nn.functional as F\n\nx = 1\n"),
        ('"""Doc."""\n\nx = 1\n', '"""Doc."""\nimport torch.nn.functional as F\n\nx = 1\n'),
        ("x = 1\n", "import torch.nn.functional as F\nx = 1\n"),
        (
            "from __future__ import division\r\nx = 1\r\n",
            "from __future__ import division\r\nimport torch.nn.functional as F\r\nx = 1\r\n",
        ),
        ("import torch.nn.functional as F\nx = 1\n", "import torch.nn.functional as F\nx = 1\n"),
        ("import torch\nx = 1\nimport late\n", "import torch\nimport torch.nn.functional as F\nx = 1\nimport late\n"),
        ("import torch", "import torch\nimport torch.nn.functional as F"),
    ],
)  # fmt: skip
def test_missing_imports_are_added_once(before: str, after: str) -> None:
    src = source(before)
    wanted = [Import("torch.nn.functional", alias="F")] * 2
    assert splice(src.text, import_edits(src, ast.parse(src.text), wanted)) == after


def test_a_file_that_changed_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "m.py"
    path.write_text("x = 1\n")
    src = Source.decode(str(path), path.read_bytes())
    patch = plan_file(src, [finding(fix=replace(src.text, "1", "2"))])
    path.write_text("x = 3\n")
    with pytest.raises(WriteError, match="changed since it was scanned"):
        write_patch(patch)
    assert path.read_text() == "x = 3\n"


def test_a_symbolic_link_stays_a_link(tmp_path: Path) -> None:
    real, link = tmp_path / "real.py", tmp_path / "link.py"
    real.write_text("x = 1\n")
    real.chmod(0o640)
    link.symlink_to(real)
    src = Source.decode(str(link), link.read_bytes())
    write_patch(plan_file(src, [finding(fix=replace(src.text, "1", "2"))]))
    assert link.is_symlink() and real.read_text() == "x = 2\n" and real.stat().st_mode & 0o777 == 0o640


def test_rank_measured_before_expected_and_free_last() -> None:
    def priced(verdict: Verdict, pct: float | None, line: int) -> Finding:
        saving = None if pct is None else PredictedSaving(1.0, pct, 0.0, pct, "")
        return finding(line=line, evidence=Evidence(verdict, "", predicted_saving=saving), score=line)

    ordered = rank(
        [
            priced(Verdict.PRESENT_BUT_FREE, 0.1, 1),
            priced(Verdict.CONFIRMED, 2.0, 2),
            priced(Verdict.NOT_REACHED, None, 3),
            priced(Verdict.CONFIRMED, 9.0, 4),
        ]
    )
    assert [f.span.line for f in ordered] == [4, 2, 3, 1]
    assert [f.rank for f in ordered] == [1, 2, 3, 4]
