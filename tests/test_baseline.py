"""Known findings stay known when code moves, and only then."""

from __future__ import annotations

import ast
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from awp_lint.detector import baseline
from awp_lint.detector.cli import main
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Confidence, Finding, RootCause, Span

CHAT = Path(__file__).resolve().parents[1] / "corpus" / "apps" / "chat"


def finding(name: str, group: str | None = "g", path: str = "a.py", rule: str = "AWP101") -> Finding:
    return Finding(
        id=name, rule=rule, name="n", path=path, span=Span(1, 1, 1, 2), function="f", message="m", why=(),
        root_cause=RootCause.RUNTIME, frequency="token", confidence=Confidence.HIGH, group=group,
    )  # fmt: skip


def test_a_known_finding_excuses_one_finding_only() -> None:
    known = [baseline.known_of(finding("one"))]
    matched = baseline.match([finding("one"), finding("two"), finding("three", group="h")], known)
    assert [f.id for f in matched.known] == ["one"]
    assert [f.id for f in matched.new] == ["two", "three"] and matched.gone == ()


def test_moved_code_matches_by_rule_and_code_and_its_own_file_first() -> None:
    known = [baseline.known_of(finding("b", path="b.py")), baseline.known_of(finding("a"))]
    matched = baseline.match([finding("x"), finding("y", rule="AWP102"), finding("z", group=None)], known)
    assert matched.moved == (("x", "a"),)
    assert [f.id for f in matched.new] == ["y", "z"] and [k.id for k in matched.gone] == ["b"]


def test_written_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "baseline.json"
    path.write_text(baseline.render([finding("b", path="z.py"), finding("a"), finding("a")]))
    assert [k.id for k in baseline.read(str(path))] == ["a", "b"]
    assert json.loads(baseline.render([]))["findings"] == []


def test_a_name_that_is_no_utf_8_survives_and_so_does_a_setting_in_a_renamed_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    odd, plain = Path(os.fsdecode(b"odd\xff.sh")), Path("deploy/serve.sh")
    odd.write_text("vllm serve m --enforce-eager\n")
    assert main(["--write-baseline", "known.json"]) == 0
    known = baseline.read("known.json")
    assert [k.path for k in known] == [str(odd)] and "\\udcff" in Path("known.json").read_text("ascii")
    assert main(["--baseline", "known.json"]) == 0
    plain.parent.mkdir()
    odd.rename(plain)
    assert main(["--baseline", "known.json"]) == 0
    plain.write_text("vllm serve m --enforce-eager --max-num-seqs 1\n")
    assert main(["--baseline", "known.json"]) == 1


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"schema": "awp-lint-baseline/1"}', "[" * 100_000,
                                  '{"schema": "awp-lint-baseline/1", "findings": [{"id": 1}]}'])  # fmt: skip
def test_what_is_no_baseline_is_refused_in_one_line(text: str) -> None:
    with pytest.raises(UsageError, match=r"^base\.json: .*baseline"):
        baseline.parse(text.encode(), "base.json")


def test_it_survives_formatting_moves_and_a_hundred_edits(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "pyproject.toml").write_text("")  # the root that module names begin at
    monkeypatch.chdir(app)
    assert main(["--write-baseline", "known.json", "--quiet"]) == 0
    assert main(["--baseline", "known.json"]) == 0
    assert len(json.loads((app / "known.json").read_text())["findings"]) >= 10

    choice = random.Random(20)
    files = [p for p in sorted(app.rglob("*.py")) if p.stat().st_size]
    for number in range(100):
        file = choice.choice(files)
        text = file.read_text()
        lines = text.split("\n")
        tops = [n for n in ast.parse(text).body[1:] if not isinstance(n, ast.ImportFrom)]
        starts = [min([n.lineno, *(d.lineno for d in getattr(n, "decorator_list", ()))]) for n in tops]
        fresh = (f"UNUSED_{number} = {number}", "# a comment", "", f"def unused_{number}():\n    return 1\n")
        lines.insert(choice.choice(starts or [len(lines)]) - 1, choice.choice(fresh))
        file.write_text("\n".join(lines))
    (app / "chatserve" / "generate.py").rename(app / "chatserve" / "decoding.py")
    for file in app.rglob("*.py"):
        file.write_text(file.read_text().replace("chatserve.generate", "chatserve.decoding"))
    subprocess.run([sys.executable, "-m", "ruff", "format", "-q", "--isolated", "--line-length=70", "."], check=True)
    assert main(["--baseline", "known.json"]) == 0

    with (app / "chatserve" / "decoding.py").open("a") as stream:
        stream.write("\n\ndef fresh(model, ids: torch.Tensor):\n    while True:\n        ids = model(ids.cuda())\n")
        stream.write("        if ids.cuda().item() == 3:\n            return ids\n")
    assert main(["--baseline", "known.json", "--confidence", "low", "--select", "AWP101"]) == 1


def test_changed_lines_only(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    monkeypatch.chdir(app)
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.com"]
    for words in (["init", "-qb", "main"], ["add", "."], [*identity, "commit", "-qm", "x"]):
        subprocess.run(["git", *words], check=True)
    assert main(["--changed"]) == 0
    source = (app / "chatserve" / "cache.py").read_text()
    (line,) = [text for text in source.split("\n") if "int(positions[-1])" in text]
    (app / "chatserve" / "cache.py").write_text("# moved\n" * 40 + source.replace(line, line + "  # touched"))
    capsys.readouterr()
    assert main(["--changed", "--format", "json"]) == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert [(f["rule"], f["path"]) for f in found] == [("AWP101", "chatserve/cache.py")]
    assert main(["--changed-from", "nowhere"]) == 2


def test_the_settings_name_it_for_every_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    app = tmp_path / "app"
    shutil.copytree(CHAT, app, ignore=shutil.ignore_patterns("__pycache__"))
    (app / "pyproject.toml").write_text('[tool.awp-lint]\nbaseline = "known.json"\n')
    monkeypatch.chdir(app)
    assert main([]) == 2
    assert "the baseline cannot be read" in capsys.readouterr().err
    assert main(["--write-baseline", "known.json"]) == 0
    monkeypatch.chdir(app / "chatserve")
    assert main([".."]) == 0
    assert "known from ../known.json" in capsys.readouterr().out


@pytest.mark.parametrize("line", ["--write-baseline x --fix", "--write-baseline x --baseline y",
                                  "--write-baseline x --changed"])  # fmt: skip
def test_combinations_that_cannot_be_meant(line: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(line.split()) == 2
    assert "--write-baseline" in capsys.readouterr().err


def test_a_baseline_that_is_missing_is_an_error(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text("")
    assert main([str(tmp_path / "a.py"), "--baseline", str(tmp_path / "none.json")]) == 2
    assert "the baseline cannot be read" in capsys.readouterr().err
