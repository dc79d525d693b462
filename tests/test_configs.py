"""Files that are no Python in a scan: which are found, what they cost, what is said of broken ones."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from awp_lint.detector.config import Settings
from awp_lint.detector.finding import Confidence
from awp_lint.detector.project.kinds import MAX_CONFIG_BYTES
from awp_lint.detector.scan import ScanResult, files_to_scan, scan

SERVE = "vllm serve m --enforce-eager\n"


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    folder = tmp_path / "tree"
    (folder / "deploy").mkdir(parents=True)
    (folder / "app.py").write_text("import torch\n")
    (folder / "deploy" / "serve.sh").write_text(SERVE)
    (folder / "deploy" / "values.yaml").write_text("replicas: 3\ncolour: red\n")
    (folder / "Dockerfile").write_text('FROM x\nENV CUDA_LAUNCH_BLOCKING=1\nCMD ["vllm", "serve", "m"]\n')
    yield folder


def found(result: ScanResult) -> list[tuple[str, str, int]]:
    return [(f.path, f.rule, f.line) for f in result.findings if f.suppressed is None]


def run(tree: Path, *paths: str, **settings: object) -> ScanResult:
    return scan(paths or (".",), replace(Settings(jobs=1), **settings), cwd=str(tree))  # type: ignore[arg-type]


def test_found_in_folders_counted_and_cached(tree: Path) -> None:
    first, second = run(tree), run(tree)
    assert found(first) == [("Dockerfile", "AWP811", 2), ("deploy/serve.sh", "AWP804", 1)]
    assert found(second) == found(first)
    assert first.files == second.files == 3  # the values hold no word of ours
    assert files_to_scan(["."], Settings(), str(tree))[0] == ["Dockerfile", "app.py", "deploy/serve.sh"]


def test_a_change_is_seen(tree: Path) -> None:
    run(tree)
    (tree / "deploy" / "serve.sh").write_text("#!/bin/sh\n" + SERVE)
    assert ("deploy/serve.sh", "AWP804", 2) in found(run(tree))


def test_settings_hold(tree: Path) -> None:
    assert found(run(tree, select=("AWP811",))) == [("Dockerfile", "AWP811", 2)]
    assert found(run(tree, per_file_ignores=(("deploy/*", ("AWP8",)),))) == [("Dockerfile", "AWP811", 2)]
    assert found(run(tree, include=("*.py",))) == []
    assert found(run(tree, exclude=("deploy",))) == [("Dockerfile", "AWP811", 2)]
    assert found(run(tree, confidence=Confidence.HIGH)) == []


def test_large_files_are_data_unless_named(tree: Path) -> None:
    (tree / "deploy" / "serve.sh").write_text(SERVE + "#" * MAX_CONFIG_BYTES)
    assert found(run(tree, "deploy")) == []
    assert found(run(tree, "deploy/serve.sh")) == [("deploy/serve.sh", "AWP804", 1)]


@pytest.mark.parametrize(
    ("name", "raw", "message"),
    [
        ("a.yaml", b"vllm: [1\n", "cannot be read"),
        ("a.json", b'{"vllm": [1, 2', "cannot be read"),
        ("a.yml", b"\xff\xfevllm", "not UTF-8 text"),
    ],
)
def test_broken_files(tree: Path, name: str, raw: bytes, message: str) -> None:
    (tree / name).write_bytes(raw)
    [walked] = run(tree).problems
    assert (walked.path, walked.fatal) == (name, False) and walked.message.startswith(message)
    [named] = run(tree, name).problems
    assert named.fatal


def test_a_named_template_is_a_note(tree: Path) -> None:
    text = "{{- if .Values.vllm }}\ncommand: vllm serve m --enforce-eager\n{{- end }}\n"
    (tree / "t.yaml").write_text(text)
    [problem] = run(tree, "t.yaml").problems
    assert (problem.message, problem.fatal) == ("a template, not read: give the files that it makes", False)
    assert run(tree).problems == ()


def test_a_named_script_without_suffix(tree: Path) -> None:
    (tree / "launch").write_text("#!/usr/bin/env bash\n" + SERVE)
    assert found(run(tree, "launch")) == [("launch", "AWP804", 2)]


def test_suppressions(tree: Path) -> None:
    text = "# awp: ignore-file[AWP811] a debugging box\nexport CUDA_LAUNCH_BLOCKING=1\n"
    text += "# awp: ignore[AWP804] measured\nvllm serve m \\\n  --enforce-eager\necho 1  # awp: ignore[AWP805]\n"
    (tree / "deploy" / "serve.sh").write_text(text)
    result = run(tree, "deploy")
    assert found(result) == []
    assert [f.suppressed for f in result.findings] == ["a debugging box", "measured"]
    assert [(p.line, p.message) for p in result.unused] == [(6, "unused suppression of AWP805")]
