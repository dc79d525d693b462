"""Input that cannot be used: one clear line, the contract's exit code, and the rest of the report."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from awp_lint.rules.memory.awp602 import CreateThenMove

HOT = textwrap.dedent(CreateThenMove.bad)  # a file with at least one finding


@dataclass(frozen=True)
class Ran:
    code: int
    out: str
    err: str

    @property
    def messages(self) -> list[str]:
        """The lines that we wrote to standard error."""
        return [line for line in self.err.splitlines() if line.startswith("awp-lint: ")]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A working folder with one file that has findings."""
    work = tmp_path / "work"
    work.mkdir()
    (work / "hot.py").write_text(HOT)
    return work


def lint(cwd: Path, *args: str, timeout: float = 100) -> Ran:
    """The real command in a folder of its own, with a cache of its own."""
    env = {**os.environ, "XDG_CACHE_HOME": str(cwd.parent / "cache"), "NO_COLOR": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "awp_lint", *args], cwd=cwd, env=env, stdin=subprocess.DEVNULL, capture_output=True,
        text=True, timeout=timeout,
    )  # fmt: skip
    assert "awp_lint" not in done.stderr.partition("Traceback")[2], done.stderr  # the program's own is no fault of ours
    return Ran(done.returncode, done.stdout, done.stderr)


def report(cwd: Path, *args: str, code: int, command: Sequence[str] = ()) -> tuple[dict[str, Any], Ran]:
    """The JSON report of a run with the expected exit code."""
    before = time.monotonic()
    target = cwd.parent / "report.json"
    profile = ["--profile", *command] if command else []
    ran = lint(cwd, *args, "--format", "json", "--output", str(target), *profile)
    assert ran.code == code, (ran, time.monotonic() - before)
    return json.loads(target.read_text(encoding="utf-8")), ran


def rules_in(data: dict[str, Any], name: str) -> set[str]:
    return {finding["rule"] for finding in data["findings"] if Path(finding["path"]).name == name}


def test_missing_path(folder: Path) -> None:
    data, ran = report(folder, "nowhere.py", "hot.py", code=2)
    assert len(ran.messages) == 1 and "nowhere.py" in ran.messages[0]
    assert "AWP602" in rules_in(data, "hot.py")


def test_only_a_missing_path(folder: Path) -> None:
    ran = lint(folder, "nowhere")
    assert ran.code == 2
    assert len(ran.messages) == 1 and "nowhere" in ran.messages[0]


@pytest.mark.skipif(hasattr(os, "geteuid") and os.geteuid() == 0, reason="root can read every file")
def test_unreadable_file(folder: Path) -> None:
    closed = folder / "closed.py"
    closed.write_text("import torch\n")
    closed.chmod(0)
    data, ran = report(folder, "closed.py", "hot.py", code=2)
    assert len(ran.messages) == 1 and "closed.py" in ran.messages[0]
    assert "AWP602" in rules_in(data, "hot.py")
    data, _ = report(folder, ".", code=1)
    assert [error["path"] for error in data["errors"]] == ["closed.py"]


def test_pipe_is_not_waited_for(folder: Path) -> None:
    os.mkfifo(folder / "pipe.py")
    data, ran = report(folder, "pipe.py", "hot.py", code=2)
    assert len(ran.messages) == 1 and "pipe.py" in ran.messages[0]
    assert "AWP602" in rules_in(data, "hot.py")
    report(folder, ".", code=1)


BROKEN: dict[str, tuple[bytes, int | None]] = {
    "codec.py": (b"# -*- coding: no-such-codec -*-\nimport torch\n", None),
    "deep.py": (b"import torch\nx = " + b"(" * 5000 + b")" * 5000 + b"\n", None),
    "latin.py": (b"import torch\n\nname = '\xe9'\n", 3),
    "long_sum.py": (b"import torch\nx = " + b"+".join([b"1"] * 30_000) + b"\n", None),
    "null.py": (b"import torch\nx = 1\0\n", None),
    "syntax.py": (b"import torch\n\ndef f(:\n    pass\n", 3),
}


def test_files_that_cannot_be_parsed(folder: Path) -> None:
    for name, (content, _) in BROKEN.items():
        (folder / name).write_bytes(content)
    named, ran = report(folder, *BROKEN, "hot.py", code=2)
    assert len(ran.messages) == len(BROKEN)
    for name in BROKEN:
        assert sum(name in message for message in ran.messages) == 1
    walked, _ = report(folder, ".", code=1)
    assert {error["path"]: error["line"] for error in walked["errors"] if BROKEN[error["path"]][1]} == {
        name: line for name, (_, line) in BROKEN.items() if line
    }
    assert {error["path"] for error in walked["errors"]} == set(BROKEN)
    assert rules_in(walked, "hot.py") == rules_in(named, "hot.py") != set()


def test_declared_encoding_and_byte_order_mark_are_fine(folder: Path) -> None:
    (folder / "latin.py").write_bytes(b"# -*- coding: latin-1 -*-\n# caf\xe9\n" + HOT.encode())
    (folder / "mark.py").write_bytes(b"\xef\xbb\xbf" + HOT.encode())
    data, ran = report(folder, ".", code=1)
    assert ran.messages == [] and data["errors"] == []
    assert rules_in(data, "latin.py") == rules_in(data, "mark.py") == rules_in(data, "hot.py") != set()


def test_empty_file_and_empty_folder(folder: Path) -> None:
    (folder / "empty.py").write_bytes(b"")
    (folder / "nothing").mkdir()
    for path in ("empty.py", "nothing"):
        data, ran = report(folder, path, code=0)
        assert data["findings"] == [] and data["errors"] == [] and ran.messages == []


def test_ten_megabytes(folder: Path) -> None:
    row = "    (" + ", ".join(str(number) for number in range(100)) + "),\n"
    (folder / "table.py").write_text("import torch\n\nTABLE = [\n" + row * (10_000_000 // len(row)) + "]\n")
    data, _ = report(folder, ".", code=1)
    assert rules_in(data, "hot.py")
    assert rules_in(data, "table.py") == set()


def test_links_in_a_circle(folder: Path) -> None:
    inner = folder / "package"
    inner.mkdir()
    (inner / "other.py").write_text(HOT)
    (inner / "up").symlink_to(folder, target_is_directory=True)
    (inner / "self").symlink_to(inner, target_is_directory=True)
    (inner / "circle.py").symlink_to("circle.py")
    (inner / "dangling.py").symlink_to("gone.py")
    data, _ = report(folder, ".", code=1)
    places = [(Path(f["path"]).name, f["rule"], f["line"]) for f in data["findings"]]
    assert len(places) == len(set(places))
    assert {name for name, _, _ in places} == {"hot.py", "other.py"}
    assert {Path(error["path"]).name for error in data["errors"]} <= {"circle.py", "dangling.py"}


def test_link_in_a_circle_named_by_the_user(folder: Path) -> None:
    (folder / "circle.py").symlink_to("circle.py")
    data, ran = report(folder, "circle.py", "hot.py", code=2)
    assert len(ran.messages) == 1 and "circle.py" in ran.messages[0]
    assert rules_in(data, "hot.py")


@pytest.mark.parametrize(
    ("args", "word"),
    [
        (["--select", "AWP999", "hot.py"], "AWP999"),
        (["--no-such-option"], "--no-such-option"),
        (["--profile"], "--profile"),
        (["--profile=python", "x.py"], "--profile"),
        (["--explain", "AWP999"], "AWP999"),
        (["hot.py", "--output", "no/such/folder/report.txt"], "no/such/folder"),
        (["hot.py", "--format", "json", "--profile", sys.executable, "-c", "pass"], "--output"),
        (["hot.py", "--config", "gone.toml"], "gone.toml"),
    ],
)
def test_wrong_use(folder: Path, args: list[str], word: str) -> None:
    ran = lint(folder, *args)
    assert ran.code == 2
    assert len(ran.messages) == 1 and word in ran.messages[0]
    assert ran.out == ""


def test_command_that_does_not_exist(folder: Path) -> None:
    ran = lint(folder, "hot.py", "--profile", "no-such-command-at-all", "--flag")
    assert ran.code == 2
    assert len(ran.messages) == 1 and "no-such-command-at-all" in ran.messages[0]


def test_command_that_may_not_be_executed(folder: Path) -> None:
    (folder / "data.txt").write_text("no program\n")
    ran = lint(folder, "hot.py", "--profile", "./data.txt")
    assert ran.code == 2
    assert len(ran.messages) == 1 and "data.txt" in ran.messages[0]


def test_script_that_does_not_exist_is_the_programs_own_failure(folder: Path) -> None:
    data, ran = report(folder, "hot.py", code=0, command=[sys.executable, "gone.py"])
    assert data["profile"]["exit_code"] == 2  # Python's own
    assert "gone.py" in ran.err


def test_command_that_exits_3(folder: Path) -> None:
    command = [sys.executable, "-c", "import sys; print('out'); print('err', file=sys.stderr); sys.exit(3)"]
    data, ran = report(folder, "hot.py", code=0, command=command)
    assert data["profile"]["exit_code"] == 3
    assert ran.out == "out\n" and "err" in ran.err.splitlines()
    assert "AWP602" in rules_in(data, "hot.py")
    assert {finding["evidence"]["verdict"] for finding in data["findings"]} == {"not_reached"}
    assert lint(folder, "hot.py", "--propagate-exit", "--profile", *command).code == 3


def test_command_that_raises(folder: Path) -> None:
    data, ran = report(folder, "hot.py", code=0, command=[sys.executable, "-c", "raise KeyError('theirs')"])
    assert data["profile"]["exit_code"] == 1
    assert "KeyError: 'theirs'" in ran.err


def test_command_that_prints_nothing(folder: Path) -> None:
    data, ran = report(folder, "hot.py", code=0, command=[sys.executable, "-c", "pass"])
    assert ran.out == ""
    assert data["profile"]["exit_code"] == 0


def test_command_that_never_imports_torch(folder: Path) -> None:
    data, ran = report(folder, "hot.py", code=0, command=[sys.executable, "-c", "print('done')"])
    assert ran.out == "done\n"
    said = [line for line in data["summary"]["notes"] if "never imported torch" in line]
    assert len(said) == 1, data["summary"]["notes"]
    assert [message for message in ran.messages if "torch" in message] == [f"awp-lint: {said[0]}"]


def test_command_that_is_no_python(folder: Path) -> None:
    data, ran = report(folder, "hot.py", code=1, command=["sh", "-c", "echo from the shell"])  # static findings count
    assert ran.out == "from the shell\n"
    assert data["profile"]["exit_code"] == 0
    assert ran.messages == [f"awp-lint: {note}" for note in data["summary"]["notes"]]
    assert len(ran.messages) == 1


def test_command_that_never_ends(folder: Path) -> None:
    (folder / "forever.py").write_text(
        "import os, time\nopen('pid', 'w').write(str(os.getpid()))\nwhile True:\n    time.sleep(0.05)\n"
    )
    started = time.monotonic()
    command = [sys.executable, "forever.py"]
    data, ran = report(folder, "hot.py", "--max-wait", "2", "--duration", "2", code=0, command=command)
    assert time.monotonic() - started < 60
    assert data["profile"] is not None and data["findings"]
    pid = int((folder / "pid").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert len([*ran.messages, *data["summary"]["notes"]]) >= 1


def test_a_fault_of_ours_does_not_look_like_findings(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from awp_lint.detector import commands
    from awp_lint.detector.cli import main

    def broken(*_: object) -> int:
        raise RuntimeError("oops")

    monkeypatch.setattr(commands, "run", broken)
    assert main([]) == 2
    assert "internal error" in capsys.readouterr().err


def test_annotations_of_nothing(folder: Path) -> None:
    (folder / "empty.py").write_text(
        "import torch\ndef f(x: tuple[()], *a: 'type[()]') -> tuple[()]: ...\ny: dict[()] = {}\n"
    )
    data, _ = report(folder, ".", code=1)
    assert data["findings"] and not data.get("problems")


def test_a_fault_of_ours_costs_one_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from awp_lint.detector import work
    from awp_lint.detector.config import Settings
    from awp_lint.detector.scan import scan

    (folder / "other.py").write_text(HOT + "\nmarked = 1\n")
    extract = work.extract

    def broken(tree: Any, text: str, copied: Any) -> Any:
        if "marked" in text:
            raise IndexError("list index\nout of range")
        return extract(tree, text, copied)

    monkeypatch.setattr(work, "extract", broken)
    result = scan([str(folder)], Settings(jobs=1, cache=False))
    assert {Path(f.path).name for f in result.findings} == {"hot.py"}
    (problem,) = result.problems
    assert problem.message == "its analysis failed (IndexError: list index out of range): please report it"


@pytest.mark.parametrize("part", ["rules", "settings"])
def test_so_does_one_while_rules_look(folder: Path, monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    from awp_lint.detector import work
    from awp_lint.detector.config import Settings
    from awp_lint.detector.scan import scan
    from awp_lint.rules.serving.configfiles import scan as configfiles

    (folder / "other.py").write_text(HOT + "\nmarked = 1\n")
    (folder / "serve.sh").write_text("vllm serve m --enforce-eager\n")
    module, name = (work, "_units") if part == "rules" else (configfiles, "read_config_file")
    whole = getattr(module, name)

    def broken(*words: Any) -> Any:
        if part == "settings" or words[0].found.path.endswith("other.py"):
            raise IndexError("list index out of range")
        return whole(*words)

    monkeypatch.setattr(module, name, broken)
    result = scan([str(folder)], Settings(jobs=1, cache=False))
    assert {Path(f.path).name for f in result.findings} == {"hot.py"} | ({"other.py"} if part == "settings" else set())
    (problem,) = result.problems
    assert problem.message == "its analysis failed (IndexError: list index out of range): please report it"
    assert not problem.fatal
