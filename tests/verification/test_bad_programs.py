"""Programs and patches that nothing can be proven of: a reason is given, nothing is claimed, nothing is left behind."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from proving import Loop, finding, proven

from awp_lint.detector.finding import Verification
from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.project.source import Source
from awp_lint.detector.verification.prove import prove

PROGRAM = textwrap.dedent("""\
    import os
    import socket
    import sys
    import time

    def forward(token):
        total = 0
        for number in range(300):
            total += number * token % 7
        EXTRA
        return total % 50

    def generate(prompt, max_new_tokens):
        token = prompt
        for step in range(max_new_tokens):
            token = forward(token)
        return token

    for request in range(int(sys.argv[1])):
        generate(request % 9, 50)
    print("done")
""")
OLD, NEW = "range(300)", "range(150 + 150)"
LONG = 10_000_000


def _prove(folder: Path, extra: str, count: int = LONG, budget: float = 9.0, new: str = NEW) -> Verification:
    path = folder / "serve.py"
    path.write_text(PROGRAM.replace("EXTRA", extra))
    text = path.read_bytes()
    _, found = proven([finding(path, "PATCH", OLD, new)], [Loop(path)], [str(path), str(count)], budget)
    assert path.read_bytes() == text
    return found["PATCH"]


def test_results_that_change_from_run_to_run_are_no_difference(tmp_path: Path) -> None:
    found = _prove(tmp_path, "total += os.urandom(1)[0]")
    assert found.verdict not in (V.DIFFERS, V.DOES_NOT_RUN)


@pytest.mark.parametrize(
    ("extra", "words"),
    [
        ("open('log.txt', 'a').close()", "it would open"),
        ("socket.socket().connect_ex(('127.0.0.1', 9))", "it would socket.connect"),
    ],
    ids=["files", "requests"],
)
def test_calls_that_touch_the_world_are_not_made_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, extra: str, words: str
) -> None:
    monkeypatch.chdir(tmp_path)
    found = _prove(tmp_path, extra)
    assert words in found.equality
    assert found.verdict in (V.NOT_RESOLVED, V.NO_EFFECT, V.REGRESSION)


def test_a_step_that_is_never_repeated(tmp_path: Path) -> None:
    path = tmp_path / "once.py"
    path.write_text("def generate():\n    for step in range(1):\n        print(sum(range(300)))\n\ngenerate()\n")
    _, found = proven([finding(path, "PATCH", OLD, NEW)], [Loop(path)], [str(path)], 9.0)
    assert found["PATCH"].verdict in (V.NOT_RESOLVED, V.NOT_EXERCISED)
    assert found["PATCH"].notes


def test_a_program_that_dies_half_way(tmp_path: Path) -> None:
    dies = "forward.calls = getattr(forward, 'calls', 0) + 1; forward.calls < 900 or os.kill(os.getpid(), 9)"
    found = _prove(tmp_path, dies, budget=12.0)
    assert found.verdict in (V.NOT_RESOLVED, V.NOT_EXERCISED)
    assert any("exit code -9" in note for note in found.notes)


def test_a_patch_of_another_version_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "serve.py"
    path.write_text(PROGRAM.replace("EXTRA", "pass"))
    patch, scanned = finding(path, "PATCH", OLD, NEW), path.read_bytes()
    loop = Loop(path)
    path.write_bytes(scanned.replace(b"% 50", b"% 51"))
    proof = prove(
        [patch], [loop], [sys.executable, str(path), "1000"], {"max_wait": 20.0},
        lambda name: Source.decode(name, scanned), 8.0, report=lambda line: None,
    )  # fmt: skip
    found = proof.by_finding["PATCH"]
    assert found.verdict in (V.NOT_RESOLVED, V.NOT_EXERCISED)
    assert found.notes and not proof.proven


def test_an_interruption_leaves_nothing_behind(tmp_path: Path) -> None:
    script = textwrap.dedent("""\
        import sys
        from pathlib import Path
        sys.path.insert(0, sys.argv[1])
        from proving import Loop, finding, read
        from awp_lint.detector.verification.prove import prove
        path = Path("serve.py").resolve()
        path.write_text("def generate():\\n    for step in range(10**9):\\n        sum(range(300))\\n\\ngenerate()\\n")
        proof = prove([finding(path, "PATCH", "range(300)", "range(301)")], [Loop(path)], [sys.executable, str(path)],
                      {"max_wait": 60.0}, read, 60.0, report=lambda line: print(line, flush=True))
        print(proof.by_finding["PATCH"].verdict.value, proof.by_finding["PATCH"].notes, proof.notes, flush=True)
    """)
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(Path(__file__).parent)], cwd=tmp_path, stdout=subprocess.PIPE, text=True,
        env={**os.environ, "TMPDIR": str(scratch)},
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stdout.readline().startswith("launch 1")
    process.send_signal(signal.SIGINT)
    rest = process.stdout.read()
    assert process.wait(60) == 0
    assert "interrupted" in rest
    assert list(scratch.iterdir()) == []
