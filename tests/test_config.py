from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.config import Settings, find_settings_file, load_settings, parse_version
from awp_lint.detector.errors import UsageError
from awp_lint.detector.finding import Confidence
from awp_lint.detector.semantics.view import Target
from awp_lint.detector.target import project_target


def load(folder: Path, overrides: list[tuple[str, object]] | None = None) -> Settings:
    return load_settings(folder, None, False, project_target(folder), overrides or [])


def test_the_command_line_wins_over_the_file_and_the_file_over_requirements(tmp_path: Path) -> None:
    (tmp_path / "requirements.txt").write_text("torch>=2.1,<3\ntransformers==4.40.1\n")
    (tmp_path / "pyproject.toml").write_text(
        '[tool.awp-lint]\nselect = ["AWP1"]\nconfidence = "low"\ntarget-torch = "2.4"\n'
        'per-file-ignores = {"tests/*" = ["AWP101"]}\nentry-points = {"*.serve_one" = "request"}\n'
    )
    settings = load(tmp_path, [("confidence", Confidence.HIGH), ("target_device", "mps")])
    assert settings.select == ("AWP1",)
    assert settings.confidence is Confidence.HIGH
    assert settings.target == Target(torch=(2, 4), transformers=(4, 40), device="mps")
    assert settings.per_file_ignores == (("tests/*", ("AWP101",)),)
    assert settings.entry_points == (("*.serve_one", "request"),)


def test_the_nearest_file_with_our_table_is_used(tmp_path: Path) -> None:
    inner = tmp_path / "pkg" / "sub"
    inner.mkdir(parents=True)
    (tmp_path / "pyproject.toml").write_text('[tool.awp-lint]\nignore = ["AWP3"]\n')
    (tmp_path / "pkg" / "pyproject.toml").write_text("[tool.other]\nx = 1\n")
    assert find_settings_file(inner) == tmp_path / "pyproject.toml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("selct = ['AWP1']", "unknown setting 'selct'"),
        ("select = 3", "select must be a list of strings"),
        ("confidence = 'sure'", "confidence must be high, medium or low"),
        ("target-torch = 'new'", "target-torch must be a version"),
        ("target-device = 'tpu'", "target-device must be one of"),
        ("select = [", "not valid TOML"),
    ],
)
def test_a_broken_settings_file_is_one_line_with_its_name(tmp_path: Path, text: str, words: str) -> None:
    (tmp_path / "awp-lint.toml").write_text(text)
    with pytest.raises(UsageError, match=words) as caught:
        load(tmp_path)
    assert "awp-lint.toml" in str(caught.value) and "\n" not in str(caught.value).strip()


@pytest.mark.parametrize(
    ("select", "ignore", "rule", "expected"),
    [
        (("AWP",), (), "AWP101", True),
        (("AWP1",), (), "AWP201", False),
        (("AWP",), ("AWP1",), "AWP101", False),
        (("AWP", "AWP101"), ("AWP1",), "AWP101", True),
        (("AWP101",), ("AWP101",), "AWP101", False),
    ],
)
def test_the_longest_prefix_decides(
    select: tuple[str, ...], ignore: tuple[str, ...], rule: str, expected: bool
) -> None:
    assert Settings(select=select, ignore=ignore).selects(rule) is expected


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("pyproject.toml", '[project]\ndependencies = ["torch >= 2.3.1", "numpy"]\n', Target(torch=(2, 3))),
        ("setup.cfg", "[options]\ninstall_requires =\n  transformers~=4.41\n", Target(transformers=(4, 41))),
        ("requirements.txt", "torchvision==0.19\npytorch-lightning==2.0\n", Target()),
        ("requirements.txt", "torch==2.6.0+cu124\n", Target(torch=(2, 6))),
        ("requirements.txt", "torch<3\n", Target()),
        ("uv.lock", '[[package]]\nname = "torch"\nversion = "2.7.1"\n', Target(torch=(2, 7))),
    ],
)
def test_versions_come_from_requirement_files(tmp_path: Path, name: str, text: str, expected: Target) -> None:
    (tmp_path / name).write_text(text)
    assert project_target(tmp_path) == expected


def test_versions() -> None:
    assert parse_version("2.5.1+cu121") == (2, 5)
    assert parse_version("3") == (3, 0)
