"""The whole against a real OpenAI-compatible server, where the environment names one. No opinion is judged here."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
import world

from awp_lint.detector.cli import main

URL = os.environ.get("AWP_LINT_TEST_LLM_URL", "")
MODEL = os.environ.get("AWP_LINT_TEST_LLM_MODEL", "")

pytestmark = pytest.mark.skipif(not (URL and MODEL), reason="needs AWP_LINT_TEST_LLM_URL and AWP_LINT_TEST_LLM_MODEL")


def run(calls: int) -> tuple[int, dict[str, Any]]:
    line = [".", "--confidence", "low", "--format", "json", "--output", "report.json", "--llm", "--llm-base-url", URL]
    code = main([*line, "--llm-model", MODEL, "--llm-max-calls", str(calls)])
    found: dict[str, Any] = json.loads(Path("report.json").read_text())
    return code, found


def test_triage_and_patches_end_and_the_second_run_asks_less(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "project").mkdir()
    monkeypatch.chdir(world.write(tmp_path / "project"))
    code, first = run(8)
    assert code == 1
    assert [f["rule"] for f in first["findings"]] == ["AWP101"]
    (note,) = [note for note in first["summary"]["notes"] if " answers from " in note]
    calls = int(note.partition("(")[2].partition(" calls")[0])
    assert 1 <= calls <= 8
    _, second = run(8)
    assert [f["id"] for f in second["findings"]] == [f["id"] for f in first["findings"]]
    if not note.startswith("language model: 0 answers"):
        assert any("kept from earlier runs" in note for note in second["summary"]["notes"])
