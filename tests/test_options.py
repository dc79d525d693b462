from __future__ import annotations

from pathlib import Path

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.options import build_parser, check_combinations, split_agent, split_command


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


@pytest.mark.parametrize(
    "line", ["--diff --fix", "--unsafe-fixes", "--patch-dir p --fix", "--warmup soon", "--warmup -3"]
)
def test_combinations_that_cannot_be_meant(line: str) -> None:
    with pytest.raises(UsageError):
        check_combinations(build_parser().parse_args(line.split()), None)


def test_a_profile_run_leaves_standard_output_to_the_program() -> None:
    options = build_parser().parse_args(["--format", "json"])
    with pytest.raises(UsageError, match="--output FILE"):
        check_combinations(options, ["python", "x.py"])


def test_load_options() -> None:
    line = "--load-url http://127.0.0.1:1/x --rate 2.5 --load-body {} --load-body 1"
    options = build_parser().parse_args(line.split())
    check_combinations(options, ["python"])
    assert (options.rate, options.load_body, options.duration) == (2.5, ["{}", "1"], None)


@pytest.mark.parametrize(
    ("line", "command", "words"),
    [
        ("--load x --load-url http://a", ["python"], "one of them"),
        ("--rate 2", ["python"], "go with --load-url"),
        ("--load-body {}", ["python"], "go with --load-url"),
        ("--load-url http:/a", ["python"], "takes a URL"),
        ("--ready-url a:80", ["python"], "takes a URL"),
        ("--load-url http://a --load-body {", ["python"], "not JSON"),
        ("--ready-port 80", None, "--ready-port goes with --profile"),
        ("--load-url http://a", None, "--load-url goes with --profile"),
    ],
)
def test_load_options_that_cannot_be_meant(line: str, command: list[str] | None, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        check_combinations(build_parser().parse_args(line.split()), command)


@pytest.mark.parametrize("value", ["0", "-1", "fast", "1e9"])
def test_rates_that_are_none(value: str) -> None:
    with pytest.raises(UsageError):
        build_parser().parse_args(["--rate", value])


@pytest.mark.parametrize(
    ("line", "command"),
    [
        ("--agent python s.py --profile x", ["python", "s.py", "--profile", "x"]),
        ("--agent -- python s.py -- a", ["python", "s.py", "--", "a"]),
        ("src --profile python s.py --agent", None),
        ("src --diff", None),
        ("-- --agent", None),
    ],
)
def test_a_command_for_the_dormant_agent(line: str, command: list[str] | None) -> None:
    assert split_agent(line.split()) == command


@pytest.mark.parametrize("line", ["--agent", "--agent --", "src --agent python s.py"])
def test_an_agent_that_cannot_be_meant(line: str) -> None:
    with pytest.raises(UsageError):
        split_agent(line.split())


def test_attach_and_profile_exclude_each_other() -> None:
    with pytest.raises(UsageError, match="one of them"):
        check_combinations(build_parser().parse_args(["--attach", "1"]), ["python"])


def test_a_trace_is_evidence_of_its_own() -> None:
    options = build_parser().parse_args(["--trace", "t.json"])
    check_combinations(options, None)
    with pytest.raises(UsageError, match="--trace reads evidence made elsewhere"):
        check_combinations(options, ["python", "x.py"])


def test_a_trace_for_perfetto_needs_a_run_and_a_folder(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="--perfetto needs a run"):
        check_combinations(build_parser().parse_args(["--perfetto", "t.json"]), None)
    with pytest.raises(UsageError, match="its folder does not exist"):
        check_combinations(build_parser().parse_args(["--perfetto", str(tmp_path / "no" / "t.json")]), ["python"])
