"""Marks by both back ends on one program with statements of every shape: exact counts, and times that lie inside."""

from __future__ import annotations

from pathlib import Path

import pytest
from programs import counts, milliseconds, plan_of, pythons

from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.reader import NO_TORCH
from awp_lint.detector.profiling.session import ProcessSession

CONSTRUCTS = Path(__file__).parent / "data" / "constructs.py"

# (kind, source, unit), executions that complete a run of main() (which runs twice), milliseconds each at least
WANTED = [
    ("call", "nap(1)", None, 1 + 2, 2),  # in max(), and in the while loop
    ("call", "nap(2)", None, 1, 2),
    ("call", "nap(slow.item())", None, 2, 2),  # the argument's time is not its own
    ("call", "int(\n        nap(slow.item())\n    )", None, 1, 0),
    ("call", "slow.chain()\n        .chain()\n        .item()", None, 1, 2),
    ("statement", "a = [slow.item() for _ in range(3)]", None, 1, 6),
    ("statement", "c = sum(slow.item() for _ in range(4))", None, 1, 8),
    ("statement", "slow[1:2]", None, 1, 2),
    ("statement", "slow[0] = x", None, 1, 2),
    ("statement", "y = slow + 1", None, 1, 2),
    ("loop", "for i in range(n)", None, 1, 4),
    ("call", "nap(i)", None, 2 + 1, 2),
    ("loop", "while total > 0", None, 1, 4),
    ("loop", "for j in range(n)", None, 1, 6),
    ("loop", "for k in range(2)", None, 3, 2),
    ("loop", "for i in range(10)", None, 1, 2),
    ("statement", "return nap(i)", None, 1, 2),
    ("function", "def recursive", None, 4, 2),
    ("call", "raising(ValueError)", None, 1, 2),
    ("call", 'nap("after")', None, 1, 2),
    ("statement", "first = raising(KeyError)", None, 1, 2),
    ("call", 'nap("through")', None, 1, 2),
    ("call", 'nap("yielded")', None, 4, 2),
    ("statement", 'total = [got, (yield nap("yielded"))]', None, 8, 0),  # in two parts each
    ("statement", 'waited = [value, await asyncio.sleep(0.01), nap("task")]', None, 4, 0),
    ("call", "nap(number)", None, 4, 2),
    ("call", 'nap("task")', None, 2, 2),
    ("call", "nap(value)", None, 15, 2),
    ("call", 'nap("property")', None, 1, 2),
]
LEFT_OPEN = {"raising(ValueError)", "first = raising(KeyError)"}  # by an exception: compiled-in marks cannot close


@pytest.fixture(scope="module", params=pythons())
def process(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> ProcessSession:
    folder = tmp_path_factory.mktemp("session")
    plan = plan_of(CONSTRUCTS, [entry[:3] for entry in WANTED])
    command = [pythons()[request.param], str(CONSTRUCTS)]
    session = run_profiled(command, plan, RunOptions(directory=str(folder), whole=True))
    assert session.exit_code == 0
    assert session.notes == (NO_TORCH,)
    (found,) = session.processes
    assert found.python.startswith(request.param + ".")
    assert not found.errors
    return found


def test_backend(process: ProcessSession) -> None:
    expected = "monitoring" if tuple(map(int, process.python.split(".")[:2])) >= (3, 12) else "compiled-in"
    assert process.backend == expected


@pytest.mark.parametrize("entry", WANTED, ids=lambda entry: entry[1].split("\n")[0])
def test_count_and_time(process: ProcessSession, entry: tuple[str, str, str | None, int, float]) -> None:
    _, text, _, times, least = entry
    if process.backend == "compiled-in" and text in LEFT_OPEN:
        times = 0
    found = counts(process)[text]
    assert found == 2 * times
    assert milliseconds(process)[text] >= found * least  # how much longer is the machine's affair


@pytest.mark.parametrize("version", pythons())
def test_a_long_loop_ticks_once_an_iteration(version: str, tmp_path: Path) -> None:
    """Its jumps need a longer encoding, by which the end of the loop must not look like one more iteration."""
    path = tmp_path / "long.py"
    body = "".join(f"        total = total + n * {number} - i\n" for number in range(200))
    path.write_text(
        f"def work(n):\n    total = 0\n    for i in range(n):\n{body}    return total\n\n\nwork(5)\nwork(3)\n"
    )
    plan = plan_of(path, [("loop", "for i in range(n)", "step")])
    folder = tmp_path / "session"
    folder.mkdir()
    session = run_profiled([pythons()[version], str(path)], plan, RunOptions(directory=str(folder), whole=True))
    (window,) = session.processes[0].windows
    assert len(window.ticks) == 8
