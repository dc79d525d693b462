"""Comments that silence what is found: where they stand, and that they do."""

from __future__ import annotations

import ast
import shutil
from pathlib import Path

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.finding import Confidence, Finding, RootCause, Span
from awp_lint.detector.ignoring import ignore_edits
from awp_lint.detector.project.source import Source
from awp_lint.patches.splice import splice

CHAT = Path(__file__).resolve().parents[1] / "corpus" / "apps" / "chat"


def finding(line: int, rule: str = "AWP101") -> Finding:
    return Finding(
        id=f"{rule}-{line}", rule=rule, name="n", path="a.py", span=Span(line, 1, line, 2), function="f", message="m",
        why=(), root_cause=RootCause.RUNTIME, frequency="token", confidence=Confidence.HIGH,
    )  # fmt: skip


def written(text: str, *findings: Finding) -> str:
    source = Source("a.py", text)
    return splice(text, ignore_edits(source, findings, "small \n  and rare"))


def test_one_comment_above_the_statement_with_its_indentation() -> None:
    text = "def f(x):\n    y = g(\n        x,\n        x.item(),\n    )\n    return y\n"
    after = written(text, finding(4), finding(3, "AWP105"), finding(4, "AWP105"))
    assert after.split("\n")[1:3] == ["    # awp: ignore[AWP101, AWP105] small and rare", "    y = g("]
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))


@pytest.mark.parametrize(
    ("text", "line", "above"),
    [
        ("if a:\n\tpass\nelif x.any():\n\tpass\n", 3, 3),
        ("@d(\n  x.item())\ndef f(): pass\n", 2, 1),
        ("for i in range(\n    n.item()):\n    pass\n", 2, 1),
        ("a = 1; b = x.item()\r\n", 1, 1),
        ("with a:\n    s = '''\n  text\n''' + x.item()\n", 4, 2),
    ],
)
def test_the_line_above_which_it_stands(text: str, line: int, above: int) -> None:
    after = written(text, finding(line))
    lines = after.splitlines()
    assert "awp: ignore[AWP101]" in lines[above - 1] and len(lines) == len(text.splitlines()) + 1
    assert ast.dump(ast.parse(after)) == ast.dump(ast.parse(text))
    assert after.count("\r\n") == (2 if "\r" in text else 0)


def test_a_project_is_silenced_and_stays_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(app)
    before = {path: ast.dump(ast.parse(path.read_text())) for path in app.rglob("*.py")}
    assert main([]) == 1
    assert main(["--write-ignores", "known since the start"]) == 0
    assert ", 0 left" not in capsys.readouterr().out
    assert main([]) == 0
    assert {path: ast.dump(ast.parse(path.read_text())) for path in app.rglob("*.py")} == before
    assert main(["--write-ignores", "again"]) == 0
    assert "again" not in "".join(path.read_text() for path in app.rglob("*.py"))


@pytest.mark.parametrize("line", [["--write-ignores", " "], ["--write-ignores", "x", "--fix"]])
def test_what_cannot_be_meant(line: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line) == 2
    assert "--write-ignores" in capsys.readouterr().err
