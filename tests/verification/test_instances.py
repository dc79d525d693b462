"""Patches of how objects are made: the original twice and the patched version side by side in one process."""

from __future__ import annotations

import dataclasses
import random
import sys
import textwrap
from pathlib import Path

import pytest
from proving import Loop, finding, proven

from awp_lint.detector.finding import Edit, FileChange, Finding, Verification
from awp_lint.detector.finding import VerificationVerdict as V
from awp_lint.detector.verification.agent.seats import Seat, Surroundings

PROGRAM = textwrap.dedent("""\
    import random
    import sys

    WIDTH = 300

    class Model:
        def __init__(self, width):
            self.table = list(range(width))
            self.noise = random.Random(5)

        def forward(self, token):
            total = int(10 * random.random()) + self.noise.randrange(3)
            for number in self.table:
                total += number * token % 7
            return total % 50

    def generate(model, prompt, max_new_tokens):
        tokens = [prompt]
        for step in range(max_new_tokens):
            tokens.append(model.forward(tokens[-1]))
        return tokens

    def main(count):
        random.seed(count)
        model = Model(WIDTH)
        for request in range(count):
            print(sum(generate(model, request % 9, 40)))

    if __name__ == "__main__":
        main(int(sys.argv[1]))
""")
LONG = 10_000_000  # requests that nobody waits for


@pytest.fixture
def program(tmp_path: Path) -> Path:
    path = tmp_path / "serve.py"
    path.write_text(PROGRAM)
    return path


def _prove(path: Path, patch: Finding, count: int = LONG, budget: float = 9.0) -> Verification:
    before = {p: p.read_bytes() for p in path.parent.rglob("*.py")}
    _, found = proven([patch], [Loop(path)], [str(path), str(count)], budget)
    after = {p: p.read_bytes() for p in path.parent.rglob("*") if p.is_file() and "__pycache__" not in p.parts}
    assert before == after
    return found[patch.id]


def _beside(found: Verification) -> bool:
    return any("side by side" in note and "not side" not in note for note in found.notes)


def test_a_right_change_of_a_constructor_is_equal(program: Path) -> None:
    found = _prove(program, finding(program, "RIGHT", "list(range(width))", "[*range(width)]"))
    assert _beside(found)
    assert "calls compared, equal" in found.equality
    assert found.verdict in (V.NO_EFFECT, V.NOT_RESOLVED, V.VERIFIED, V.REGRESSION)


def test_a_wrong_one_is_caught(program: Path) -> None:
    found = _prove(program, finding(program, "WRONG", "list(range(width))", "list(range(width - 1))"))
    assert found.verdict is V.DIFFERS
    assert "Model.forward: value of " in found.equality


def test_another_random_stream_is_caught(program: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(program.parent)
    (program.parent / "served.py").write_text(PROGRAM)
    program.write_text("import sys\nfrom served import main\n\nmain(int(sys.argv[1]))\n")
    patch = finding(program.parent / "served.py", "DRAWS", "random.Random(5)", "random.Random(random.random())")
    _, found = proven([patch], [Loop(program.parent / "served.py")], ["serve.py", str(LONG)], 9.0)
    assert found["DRAWS"].verdict is V.DIFFERS


def test_a_constant_and_a_method_more(program: Path) -> None:
    found = _prove(program, finding(program, "CONSTANT", "WIDTH = 300", "WIDTH = 299"))
    assert found.verdict is V.DIFFERS
    assert "generate: value of result" in found.equality
    method = "    def forward(self, token):"
    patch = finding(program, "METHOD", method, f"    def unused(self):\n        return 0\n\n{method}")
    found = _prove(program, patch)
    assert _beside(found) and "equal" in found.equality


def test_one_that_fails_does_not_run(program: Path) -> None:
    found = _prove(program, finding(program, "BREAKS", "list(range(width))", "list(missing)"))
    assert found.verdict is V.DOES_NOT_RUN
    assert "NameError" in found.equality


def test_a_program_too_short_to_take_turns_in_goes_by_whole_processes(program: Path) -> None:
    found = _prove(program, finding(program, "RIGHT", "list(range(width))", "[*range(width)]"), count=3)
    assert not _beside(found)
    assert "output is the same" in found.equality


def test_a_module_of_a_package_with_a_file_that_the_patch_adds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "served"
    folder.mkdir()
    (folder / "__init__.py").write_text("")
    model, _, main = PROGRAM.partition("def generate(")
    (folder / "model.py").write_text(model)
    start = "import random\nimport sys\nfrom served.model import WIDTH, Model\n\n"
    (folder / "main.py").write_text(start + "def generate(" + main)
    patch = finding(folder / "model.py", "ADDS", "list(range(width))", "made(width)")
    assert patch.fix is not None
    text = (folder / "model.py").read_text()
    edits = (Edit(0, 0, "from served.tables import made\n"), *patch.fix.edits)
    added = FileChange(str(folder / "tables.py"), created="def made(width):\n    return [*range(width)]\n")
    patch = dataclasses.replace(patch, fix=dataclasses.replace(patch.fix, edits=edits, others=(added,)))
    monkeypatch.chdir(tmp_path)
    _, found = proven([patch], [Loop(folder / "main.py")], ["-m", "served.main", str(LONG)], 12.0)
    assert "calls compared, equal" in found["ADDS"].equality
    assert _beside(found["ADDS"])
    assert not (folder / "tables.py").exists() and (folder / "model.py").read_text() == text


def test_programs_that_take_turns_have_modules_and_random_states_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "turned.py").write_text("import random\nSTATE = []\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    kept, main = random.getstate(), sys.modules["__main__"]
    around = Surroundings([str(tmp_path)])
    one, other = Seat("A", 0), Seat("B", 1)
    modules = []
    try:
        for seat in (one, other, one, other):
            around.enter(seat)
            import turned  # type: ignore[import-not-found]

            turned.STATE.append(random.random())
            modules.append(turned)
            seat.started = True
            around.leave(seat)
            del turned
        assert "turned" not in sys.modules
    finally:
        sys.modules["__main__"] = main
        random.setstate(kept)
    assert modules[0] is modules[2] and modules[1] is modules[3] and modules[0] is not modules[1]
    assert modules[0].STATE == modules[1].STATE and len(set(modules[0].STATE)) == 2
