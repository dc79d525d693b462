"""Patches tried in running programs: what is proven, what is caught, and that the program is as it was."""

from __future__ import annotations

import dataclasses
import textwrap
from pathlib import Path

import pytest
from proving import Loop, finding, proven

from awp_lint.detector.finding import FileChange, Finding, Verification
from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.verification.prove import Proof

PROGRAM = textwrap.dedent("""\
    import sys
    import time

    SIZE = 400

    class Model:
        def __init__(self):
            self.seen = []

        def forward(self, token):
            total = 0
            for number in range(SIZE):
                total += number * token % 7
            self.record(total)
            return total % 50

        def record(self, total):
            self.seen.append(total)
            del self.seen[:-3]

        def unused(self):
            return 1

    def generate(model, prompt, max_new_tokens):
        token = prompt
        for step in range(max_new_tokens):
            token = model.forward(token)
        return token

    def main(count):
        model = Model()
        print(sum(generate(model, request, 50) for request in range(count)), model.seen)

    main(int(sys.argv[1]))
""")


def _prove(folder: Path, findings: list[Finding], count: int, budget: float) -> tuple[Proof, dict[str, Verification]]:
    return proven(findings, [Loop(folder / "serve.py")], [str(folder / "serve.py"), str(count)], budget)


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "serve.py"
    path.write_text(PROGRAM)
    return path


def test_patches_are_told_apart_in_one_launch(program: Path) -> None:
    work = "total += number * token % 7"
    findings = [
        finding(program, "RIGHT", "for number in range(SIZE):", "for number in range(SIZE - SIZE // 2 + SIZE // 2):"),
        finding(program, "WRONG", work, "total += number * token % 7 + (number == 399)"),
        finding(program, "LOST", "del self.seen[:-3]", "del self.seen[:-2]"),
        finding(program, "BREAKS", work, "total += missing"),
        finding(program, "UNUSED", "return 1", "return 2 - 1"),
        finding(program, "NOMODULE", "import time\n", "import time\nimport not_there_at_all\n"),
        dataclasses.replace(finding(program, "AGAIN", work, "total += missing"), rule="OTHER"),
    ]
    before = program.read_bytes()
    proof, found = _prove(program.parent, findings, 10_000, 32.0)
    assert program.read_bytes() == before
    assert {p.name for p in program.parent.iterdir()} == {"serve.py"}
    assert found["RIGHT"].pairs > 20
    assert "equal" in found["RIGHT"].equality
    assert found["RIGHT"].verdict in (V.NO_EFFECT, V.NOT_RESOLVED)
    assert found["WRONG"].verdict is V.DIFFERS
    assert "value of result" in found["WRONG"].equality
    assert found["LOST"].verdict is V.DIFFERS
    assert "mutation of self.seen" in found["LOST"].equality
    assert found["BREAKS"].verdict is V.DOES_NOT_RUN
    assert "NameError" in found["BREAKS"].equality
    assert found["AGAIN"].verdict is V.DOES_NOT_RUN  # tried once, and told of both
    assert found["AGAIN"].notes[0] == "the patch of BREAKS is the same"
    assert found["UNUSED"].verdict is V.NOT_EXERCISED
    assert found["NOMODULE"].verdict is V.DOES_NOT_RUN
    assert not proof.proven
    assert proof.summary["launches"] >= 1


def test_a_gain_is_measured(program: Path) -> None:
    faster = finding(program, "FASTER", "total += number * token % 7", "pass\n        total = SUMS[token]")
    text = PROGRAM.replace(
        "class Model:",
        "SUMS = {token: sum(number * token % 7 for number in range(SIZE)) for token in range(1000)}\n\nclass Model:",
    )
    program.write_text(text)
    faster = finding(program, "FASTER", "total += number * token % 7", "pass\n        total = SUMS[token]")
    _, found = _prove(program.parent, [faster], 20_000, 15.0)
    assert found["FASTER"].saving_pct is not None
    assert found["FASTER"].low_pct is not None
    assert found["FASTER"].saving_pct > 10
    assert found["FASTER"].verdict in (V.VERIFIED, V.NOT_RESOLVED)


def test_a_function_that_encloses_its_units_switches_at_its_calls(program: Path) -> None:
    same = finding(program, "SAME", "token = prompt\n", "token = prompt + 0\n")
    _, found = _prove(program.parent, [same], 10_000, 14.0)
    assert found["SAME"].pairs > 10
    assert "equal" in found["SAME"].equality


def test_what_is_made_at_import_is_proven_by_whole_processes(program: Path) -> None:
    findings = [finding(program, "CONSTANT", "SIZE = 400", "SIZE = 200 + 200")]
    _, found = _prove(program.parent, findings, 10, 15.0)
    assert found["CONSTANT"].pairs >= 1
    assert "output is the same" in found["CONSTANT"].equality
    assert any("whole processes" in note for note in found["CONSTANT"].notes)
    findings = [finding(program, "CONSTANT", "SIZE = 400", "SIZE = 398")]
    _, found = _prove(program.parent, findings, 10, 15.0)
    assert found["CONSTANT"].verdict is V.DIFFERS


def test_a_patch_may_add_a_module(program: Path) -> None:
    made = finding(program, "ADDS", "import time\n", "import time\nfrom sizes import SIZES\n")
    assert made.fix is not None
    other = FileChange(str(program.parent / "sizes.py"), created="SIZES = (1, 2)\n")
    made = dataclasses.replace(made, fix=dataclasses.replace(made.fix, others=(other,)))
    _, found = _prove(program.parent, [made], 10, 8.0)
    assert "output is the same" in found["ADDS"].equality
    assert {p.name for p in program.parent.iterdir()} == {"serve.py"}


def test_a_program_that_ends_with_an_error_proves_nothing(program: Path) -> None:
    program.write_text(PROGRAM.replace("main(int(sys.argv[1]))", "sys.exit(3)"))
    right = finding(program, "RIGHT", "range(SIZE)", "range(SIZE + 0)")
    _, found = _prove(program.parent, [right], 10, 20.0)
    assert found["RIGHT"].verdict is V.NOT_RESOLVED
    assert any("exit code 3" in note for note in found["RIGHT"].notes)


def test_a_program_without_its_accelerator_proves_nothing(program: Path) -> None:
    program.write_text(PROGRAM.replace("main(int(sys.argv[1]))", 'raise RuntimeError("No CUDA GPUs are available")'))
    before = program.read_bytes()
    right = finding(program, "RIGHT", "range(SIZE)", "range(SIZE + 0)")
    _, found = _prove(program.parent, [right], 10, 20.0)
    assert found["RIGHT"].verdict is V.NOT_RESOLVED
    assert any("exit code 1" in note for note in found["RIGHT"].notes)
    assert program.read_bytes() == before and {p.name for p in program.parent.iterdir()} == {"serve.py"}


def test_a_program_of_a_few_milliseconds_proves_nothing(program: Path) -> None:
    before = program.read_bytes()
    right = finding(program, "RIGHT", "range(SIZE)", "range(SIZE + 0)")
    _, found = _prove(program.parent, [right], 1, 8.0)
    assert found["RIGHT"].verdict in (V.NOT_RESOLVED, V.NOT_EXERCISED) and found["RIGHT"].notes
    assert program.read_bytes() == before and {p.name for p in program.parent.iterdir()} == {"serve.py"}


def test_a_program_that_prints_something_else_each_time_proves_nothing(program: Path) -> None:
    program.write_text(PROGRAM.replace("print(sum(", "print(time.perf_counter_ns(), sum("))
    before = program.read_bytes()
    other = finding(program, "CONSTANT", "SIZE = 400", "SIZE = 398")
    proof, found = _prove(program.parent, [other], 10, 15.0)
    assert found["CONSTANT"].verdict is V.NOT_RESOLVED and not proof.proven
    said = found["CONSTANT"].equality
    assert "differs from run to run" in said or "one run only" in said  # the latter where two runs take too long
    assert program.read_bytes() == before and {p.name for p in program.parent.iterdir()} == {"serve.py"}
