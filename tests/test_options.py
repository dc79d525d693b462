from __future__ import annotations

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.options import build_parser, check_combinations, split_command


@pytest.mark.parametrize(
    ("line", "own", "command"),
    [
        ("src --format json", ["src", "--format", "json"], None),
        ("--profile python s.py --port 80", [], ["python", "s.py", "--port", "80"]),
        ("src --profile python s.py --format x", ["src"], ["python", "s.py", "--format", "x"]),
        ("--profile -- python s.py -- a", [], ["python", "s.py", "--", "a"]),
        ("--duration 5 --profile a --profile b", ["--duration", "5"], ["a", "--profile", "b"]),
        ("-- --profile", ["--", "--profile"], None),
        ("--profile python -c --help", [], ["python", "-c", "--help"]),
    ],
)
def test_the_users_command_is_untouched(line: str, own: list[str], command: list[str] | None) -> None:
    assert split_command(line.split()) == (own, command)


@pytest.mark.parametrize("line", ["--profile=python s.py", "--profile", "src --profile --"])
def test_profile_without_a_command_is_refused(line: str) -> None:
    with pytest.raises(UsageError):
        split_command(line.split())


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("--format yaml", "invalid choice: 'yaml'"),
        ("--select E501", "'E501' is no rule id"),
        ("--target-torch new", "'new' is no version"),
        ("--duration -1", "no positive number"),
        ("--jobs many", "no number of jobs"),
        ("--unknown", "unrecognized arguments: --unknown"),
        ("--conf high", "unrecognized arguments"),
    ],
)
def test_bad_values_name_the_value(line: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        build_parser().parse_args(line.split())


@pytest.mark.parametrize("line", ["--diff --fix", "--unsafe-fixes", "--warmup soon", "--warmup -3"])
def test_combinations_that_cannot_be_meant(line: str) -> None:
    with pytest.raises(UsageError):
        check_combinations(build_parser().parse_args(line.split()), None)


def test_a_profile_run_leaves_standard_output_to_the_program() -> None:
    options = build_parser().parse_args(["--format", "json"])
    with pytest.raises(UsageError, match="--output FILE"):
        check_combinations(options, ["python", "x.py"])
