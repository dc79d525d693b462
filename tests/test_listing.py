"""Lists for people and scripts: the rules, counts by rule, unused suppressions."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from awp_lint.detector.cli import main

SERVE = "vllm serve m --enforce-eager\nvllm serve m --enforce-eager --max-num-seqs 1\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(tmp_path / "cache"))
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)
    return work


def test_rules_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--list-rules", "--format", "json"]) == 0
    rows = {row["id"]: row for row in json.loads(capsys.readouterr().out)}
    assert len(rows) == 80  # the catalogue, 1xx to 9xx
    assert list(rows["AWP804"]) == ["id", "name", "root_cause", "confidence", "rewrite", "summary"]
    assert (rows["AWP804"]["name"], rows["AWP804"]["root_cause"]) == ("eager-engine", "runtime")
    assert rows["AWP602"]["rewrite"]


def test_counts_by_rule(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "serve.sh").write_text(SERVE)
    assert main(["--statistics"]) == 1
    assert capsys.readouterr().out.split() == ["2", "AWP804", "eager-engine", "1", "AWP805", "starved-engine"]
    main(["--statistics", "--format", "json"])
    assert json.loads(capsys.readouterr().out)["summary"]["rules"] == {"AWP804": 2, "AWP805": 1}


def test_unused_suppressions_are_said_and_change_no_exit_code(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "serve.sh").write_text("vllm serve m  # awp: ignore[AWP804] nothing here\n")
    (folder / "model.py").write_text("import torch\n\nx = torch.ones(2)  # awp: ignore[AWP101]\n")
    assert main([]) == 0
    assert capsys.readouterr().err.splitlines() == [
        "awp-lint: model.py:3: unused suppression of AWP101",
        "awp-lint: serve.sh:1: unused suppression of AWP804",
    ]
    main(["--format", "json", "--quiet"])
    assert [e["line"] for e in json.loads(capsys.readouterr().out)["errors"]] == [3, 1]


def test_noqa_silences_and_counts_as_suppressed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "serve.sh").write_text("vllm serve m --enforce-eager  # noqa: AWP804\n")
    assert main(["--format", "json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert ([f["suppressed"] for f in data["findings"]], data["summary"]["suppressed"]) == ([""], 1)
