"""From paths to findings: the same for any number of processes, order of files and state of the cache."""

from __future__ import annotations

import json
import os
import textwrap
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from awp_lint.detector import pipeline
from awp_lint.detector.config import Settings
from awp_lint.detector.finding import MarkKind
from awp_lint.detector.scan import ScanResult, files_to_scan, scan

FILES = {
    "lib/__init__.py": "",
    "lib/model.py": """
        import torch
        from torch import nn
        from .sampling import pick

        class Model(nn.Module):
            def __init__(self):
                super().__init__()
                self.head = nn.Linear(8, 8)
            def forward(self, ids: torch.Tensor) -> torch.Tensor:
                positions = torch.arange(ids.shape[1]).to(ids.device)
                return self.head(positions)

        @torch.inference_mode()
        def generate(model: Model, ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            for _ in range(max_new_tokens):
                ids = torch.cat([ids, pick(model(ids))], 1)
            return ids
        """,
    "lib/sampling.py": """
        import torch

        def pick(logits: torch.Tensor) -> torch.Tensor:
            token = logits[:, -1].argmax(-1)
            if (token == 0).any():
                token = token + 1
            return token[:, None]
        """,
    "app.py": """
        from fastapi import FastAPI
        from lib.model import Model, generate

        app = FastAPI()
        model = Model().to("cuda")

        @app.post("/")
        def answer(request):
            return generate(model, request, 8)
        """,
    "tests/test_model.py": "from lib.model import generate\n\ndef test_it():\n    generate(None, None, 1)\n",
}


@pytest.fixture(autouse=True)
def own_cache(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(tmp_path_factory.mktemp("cache")))


@pytest.fixture
def project(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text))
    (tmp_path / "pyproject.toml").write_text("")
    return tmp_path


def plain(result: ScanResult) -> ScanResult:
    """All that must not depend on how the scan was run."""
    return replace(result, seconds=0.0)


def run(project: Path, *paths: str, **changes: object) -> ScanResult:
    return plain(scan(paths or (".",), replace(Settings(), **changes), cwd=str(project)))  # type: ignore[arg-type]


def places(result: ScanResult) -> set[tuple[str, str, str, str]]:
    return {(f.path, f.rule, f.function, f.frequency) for f in result.findings}


def test_frequencies_come_from_other_files(project: Path) -> None:
    result = run(project)
    assert ("lib/sampling.py", "AWP102", "pick", "request×token") in places(result)
    assert ("lib/model.py", "AWP602", "Model.forward", "request×token") in places(result)
    assert (
        result.files == 5
        and result.problems == ()
        and result.lines == sum((project / name).read_text().count("\n") for name in FILES)
    )
    (finding,) = [f for f in result.findings if f.rule == "AWP102"]
    assert [(f.path, f.function) for f in finding.chain] == [("app.py", "answer"), ("lib/model.py", "generate")]


def test_processes_order_and_cache_change_nothing(project: Path) -> None:
    for number in range(30):  # enough for several processes
        (project / f"copy{number}.py").write_text((project / "lib/sampling.py").read_text())
    cold = run(project, jobs=1)
    assert len(cold.findings) > 1
    assert run(project, jobs=1) == cold  # all from the cache
    assert run(project, jobs=3, cache=False) == cold
    names = sorted(str(path.relative_to(project)) for path in project.rglob("*.py"))
    forward = run(project, *names, jobs=2)
    assert run(project, *reversed(names), jobs=1, cache=False) == forward
    assert forward.findings == cold.findings


def test_a_change_elsewhere_is_seen_from_the_cache(project: Path) -> None:
    run(project)
    app = project / "app.py"
    app.write_text(app.read_text().replace('@app.post("/")', "# nobody"))
    changed = run(project)
    assert changed == run(project, cache=False)
    assert ("lib/sampling.py", "AWP102", "pick", "request×token") in places(changed)  # generate() is an entry itself
    (project / "lib/model.py").write_text((project / "lib/model.py").read_text().replace("def generate", "def _loop"))
    app.write_text("")
    changed = run(project)
    assert changed == run(project, cache=False)
    assert not any(path == "lib/sampling.py" for path, *_ in places(changed))


@pytest.mark.parametrize("name", [name for name in FILES if FILES[name]])
def test_any_edit_gives_what_a_cold_run_gives(project: Path, name: str) -> None:
    run(project)
    file = project / name
    for text in ("\n\n" + file.read_text(), file.read_text() + "\nextra = 1\n", file.read_text()):
        file.write_text(text)
        assert run(project) == run(project, cache=False)


ALONE = """
def spare(value, *, scale=2):
    return value * scale


"""


def test_a_function_that_nobody_can_notice_links_nothing(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """... wherever it comes, and the numbers of the functions behind it and in it still are theirs."""
    model = project / "lib/model.py"
    nested = "\n\ndef order(rows):\n    return sorted(rows, key=lambda row: row.size)\n"
    model.write_text(model.read_text() + nested)
    before = run(project)
    assert before == run(project, cache=False)
    text = model.read_text()
    edits = [
        text + ALONE,
        text.replace("class Model", ALONE.replace("spare", "between") + "class Model"),
        ALONE.replace("spare", "unheard") + text,
    ]
    expected = []
    for edit in edits:
        model.write_text(edit)
        expected.append(run(project, cache=False))

    def linked(*arguments: object) -> None:
        raise AssertionError("linked anew")

    with monkeypatch.context() as patched:
        patched.setattr("awp_lint.detector.pipeline.Linked", linked)
        for edit, cold in zip(edits, expected, strict=True):
            model.write_text(edit)
            assert run(project) == cold
    sampling = project / "lib/sampling.py"
    sampling.write_text("\n" + sampling.read_text() + ALONE)
    assert run(project) == run(project, cache=False)


@pytest.mark.parametrize(
    ("name", "addition"),
    [
        ("lib/model.py", "def spare(value):\n    return forward(value)\n"),  # calls something
        ("lib/model.py", "def generate(value):\n    return value\n"),  # takes a name that others use
        ("lib/model.py", "def main():\n    return 1\n"),  # is an entry
        ("app.py", "@app.post('/other')\ndef other(value):\n    return value\n"),
        ("app.py", "def spare(value):\n    return value\n\nspare(1)\n"),
        ("app.py", "class Spare:\n    def pick(self):\n        return 1\n"),
        ("lib/__init__.py", "def pick(value):\n    return value\n"),
    ],
)
def test_additions_that_others_may_notice(project: Path, name: str, addition: str) -> None:
    run(project)
    file = project / name
    text = file.read_text()
    for changed in (text + "\n\n" + addition, text):
        file.write_text(changed)
        assert run(project) == run(project, cache=False)


def test_settings_are_part_of_what_is_cached(project: Path) -> None:
    assert run(project, select=("AWP602",)).findings != run(project, select=("AWP102",)).findings
    assert {f.rule for f in run(project, ignore=("AWP1",)).findings}.isdisjoint({"AWP101", "AWP102"})
    ignored = run(project, per_file_ignores=(("lib/s*.py", ("AWP102",)),))
    assert not any(path == "lib/sampling.py" and rule == "AWP102" for path, rule, *_ in places(ignored))


def test_suppressed_findings_are_marked(project: Path) -> None:
    file = project / "lib/sampling.py"
    file.write_text(
        file.read_text().replace("if (token == 0).any():", "if (token == 0).any():  # awp: ignore[AWP102] ok")
    )
    result = run(project)
    assert [f.suppressed for f in result.findings if f.rule == "AWP102"] == ["ok"]
    assert result.suppressed == 1


def test_units_are_loops_over_tokens(project: Path) -> None:
    units = run(project).units
    assert [(Path(u.path).name, u.module, u.unit, u.mark.kind, u.mark.function) for u in units] == [
        ("model.py", "lib.model", "step", MarkKind.LOOP, "generate")
    ]
    assert all(os.path.isabs(unit.path) for unit in units)


def test_notebooks_by_cell_and_line(project: Path) -> None:
    code = "for p in prompts:\n    x = torch.zeros(4).to('cuda')\n    y = model(x)\n"
    cells = [
        {"cell_type": "markdown", "source": "# Title"},
        {"cell_type": "code", "source": "%load_ext x\nimport torch\nmodel = torch.nn.Linear(4, 4).cuda()"},
        {"cell_type": "code", "source": code + "for"},
        {"cell_type": "code", "source": code.splitlines(keepends=True)},
    ]
    (project / "note.ipynb").write_text(json.dumps({"cells": cells}))
    result = run(project, "note.ipynb", select=("AWP602",))
    hits = {(f.cell, f.line) for f in result.findings}
    assert hits == {(4, 2)} or hits == set()  # how often a notebook's loop counts is the rule's affair
    assert all(f.mark is None and (f.fix is None or not f.fix.edits) for f in result.findings)
    assert [(p.message, p.line, p.fatal) for p in result.problems] == [
        ("cell 3: syntax error: invalid syntax", 4, False)
    ]


@pytest.mark.parametrize(
    ("content", "message", "line"),
    [
        (b"def f(:\n", "syntax error", 1),
        (b"print 'two'\n", "syntax error: Missing parentheses", 1),
        (b"x = '\xe9'\n", "not utf-8", 1),
        (b"x = 1\0\n", "NUL", None),
        (b"x = " + b"(" * 500 + b")" * 500 + b"\n", "", 1),
        (b"x = " + b"-" * 10_000 + b"1\n", "nested too deeply", None),
        (b"#" * 3_000_001, "larger than 3 MB", None),
    ],
)
def test_files_that_cannot_be_used(project: Path, content: bytes, message: str, line: int | None) -> None:
    (project / "bad.py").write_bytes(content)
    walked, named = run(project), run(project, "bad.py", "app.py")
    (problem,) = walked.problems
    assert problem.path == "bad.py" and not problem.fatal and message in problem.message and problem.line == line
    assert "\n" not in problem.message
    (problem,) = named.problems
    assert problem.fatal and message in problem.message
    assert any(path == "lib/sampling.py" for path, *_ in places(walked))


def test_deep_and_long_files_are_handled(project: Path) -> None:
    chain = "x" + ".a(1)" * 300
    (project / "deep.py").write_text(f"import torch\ndef f(x):\n    return {chain}\n")
    (project / "long.py").write_text("import torch\n" + "def f(x):\n    return x.item()\n" * 25_000)
    result = run(project, jobs=1)
    assert result.files == 7
    assert all(problem.path in ("deep.py",) for problem in result.problems)


def test_missing_paths_and_empty_folders(project: Path) -> None:
    (project / "empty").mkdir()
    result = run(project, "nowhere", "empty")
    assert [(p.path, p.fatal) for p in result.problems] == [("nowhere", True)]
    assert result.findings == () and result.files == 0


def test_files_to_scan(project: Path) -> None:
    files, problems = files_to_scan(["lib", "gone"], Settings(), str(project))
    assert files == ["lib/__init__.py", "lib/model.py", "lib/sampling.py"]
    assert [p.path for p in problems] == ["gone"]


def test_progress_ends_at_all_files(project: Path) -> None:
    seen: list[tuple[int, int]] = []
    for _ in range(2):
        scan(["."], Settings(jobs=1), progress=lambda done, total: seen.append((done, total)), cwd=str(project))
    assert seen[-1] == (5, 5) and all(0 <= done <= total == 5 for done, total in seen)


def test_an_unusable_cache_is_no_obstacle(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run(project)
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(project / "app.py" / "below"))
    assert run(project) == before


@pytest.fixture(autouse=True)
def no_surprise() -> Iterator[None]:
    """The garbage collector is left as it was."""
    import gc

    before = gc.isenabled()
    yield
    assert gc.isenabled() == before


def test_a_process_that_scans_again_and_again_does_not_fill_the_memory(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import gc

    monkeypatch.setattr(pipeline, "_MOST_LEFT", 2_000)
    held = []
    for _ in range(40):
        scan(["."], Settings(jobs=1, cache=False), cwd=str(project))
        held.append(len(gc.get_objects()))
    assert max(held[20:]) <= max(held[:20]) + 500, held


def test_unused_suppressions_are_told_from_those_of_hidden_findings(project: Path) -> None:
    text = (project / "lib" / "sampling.py").read_text()
    text = text.replace("argmax(-1)", "argmax(-1)  # awp: ignore[AWP101] none here")
    text = text.replace("any():", "any():  # awp: ignore[AWP102] the stop check")
    text += "\n\ndef nobody_calls(t: torch.Tensor) -> float:\n    return t.sum().item()  # awp: ignore[AWP101] low\n"
    (project / "lib" / "sampling.py").write_text(text)
    result = scan(["."], Settings(jobs=1), cwd=str(project))
    assert [(p.path, p.line, p.message) for p in result.unused] == [
        ("lib/sampling.py", 5, "unused suppression of AWP101")
    ]
    assert [f.suppressed for f in result.findings if f.suppressed is not None] == ["the stop check"]


def test_what_models_are_generated_from_is_left_out_unless_named(project: Path) -> None:
    folder = project / "lib" / "models" / "toy"
    folder.mkdir(parents=True)
    (folder / "modular_toy.py").write_text("import torch\n\ndef f(:\n")
    (folder / "modeling_toy.py").write_text("import torch\n")
    assert scan([str(project)], Settings(jobs=1)).problems == ()
    (problem,) = scan([str(folder / "modular_toy.py")], Settings(jobs=1)).problems
    assert problem.fatal and "syntax error" in problem.message
