"""The apps of the corpus: their lists name real lines, and they do the same thing every time."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXPERTS = ROOT / "corpus" / "experts"
APPS = sorted(path.parent for path in (ROOT / "corpus" / "apps").glob("*/faults.json"))


@pytest.fixture(scope="module")
def scorer() -> ModuleType:
    folder = ROOT / "benchmarks"
    sys.path.insert(0, str(folder))
    try:
        spec = importlib.util.spec_from_file_location("apps_benchmark", folder / "apps.py")
        assert spec is not None and spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        sys.modules[spec.name] = module
        spec.loader.exec_module(module)
        return module
    finally:
        sys.path.remove(str(folder))


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_listed_lines_exist_once(app: Path, scorer: ModuleType) -> None:
    places = scorer.load(app)
    assert "lookalikes" in {place.kind for place in places}


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_readme_lists_every_fault_and_lookalike(app: Path) -> None:
    readme = (app / "README.md").read_text(encoding="utf-8")
    truth = json.loads((app / "faults.json").read_text(encoding="utf-8"))
    for entry in (*truth["faults"], *truth["lookalikes"]):
        assert entry["code"].replace("|", "\\|") in readme, entry["code"]
    for entry in truth["faults"]:
        assert entry["after"] in readme


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_source_does_not_give_the_faults_away(app: Path) -> None:
    for path in app.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert "AWP" not in text and "awp" not in text, path


def _finding(path: Path, function: str, line: int, rule: str, also: tuple[str, ...] = ()) -> dict[str, object]:
    return {"path": str(path), "function": function, "line": line, "end_line": line, "rule": rule, "also": also,
            "message": ""}  # fmt: skip


def test_score_tells_true_false_and_tolerated_apart(tmp_path: Path, scorer: ModuleType) -> None:
    (tmp_path / "a.py").write_text("def f(x):\n    y = x.item()\n    z = x.item()\n    return y\n")
    (tmp_path / "faults.json").write_text(
        json.dumps({
            "faults": [
                {"path": "a.py", "function": "f", "code": "y = x.item()", "rule": "AWP101", "accepts": ["AWP108"],
                 "why": "", "after": ""},
                {"path": "a.py", "function": "f", "code": "return y", "rule": "AWP999", "why": "", "after": ""},
            ],
            "lookalikes": [{"path": "a.py", "function": "f", "code": "z = x.item()", "rules": ["AWP101"], "why": "w"}],
            "tolerated": [{"path": "a.py", "function": "f", "rules": ["AWP301"], "why": ""}],
        })
    )  # fmt: skip
    places = scorer.load(tmp_path)
    path = tmp_path / "a.py"
    findings = [
        _finding(path, "f", 2, "AWP101"),
        _finding(path, "f", 3, "AWP101"),
        _finding(path, "f", 3, "AWP301"),
        _finding(path, "f", 4, "AWP401"),
    ]
    result = scorer.score(findings, places, {"AWP101", "AWP301", "AWP401"})
    assert [place.code for place, _ in result.found] == ["y = x.item()"]
    assert result.missed == []  # AWP999 does not exist yet
    assert [(finding["line"], place.why if place else None) for finding, place in result.false] == [(3, "w"), (4, None)]
    assert result.tolerated == 1
    assert result.precision == pytest.approx(1 / 3)
    assert result.recall == 1.0

    assert scorer.total([result, result]) == "2 apps: precision 0.33 (2 of 6), recall 1.00 (2 of 2)"
    assert scorer.total([]) == "0 apps: precision none (0 of 0), recall none (0 of 0)"

    stands_for = scorer.score([_finding(path, "f", 2, "AWP108", ("AWP101",))], places, {"AWP101"})
    assert len(stands_for.found) == 1
    nothing = scorer.score([], places, {"AWP101"})
    assert [place.code for place in nothing.missed] == ["y = x.item()"]
    assert (nothing.recall, nothing.precision) == (0.0, 1.0)


TWICE = """
import contextlib, importlib, io, os, sys
app, expert, *words = sys.argv[1:]
sys.path[:0] = [app, os.path.dirname(expert)]
sys.argv = ["main.py", *words]

def run():
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        assert importlib.import_module("main").main() == 0
    return out.getvalue()

first = run()
assert run() == first, first
sys.stdout.write(first)
if os.path.isdir(expert):  # its modules in the place of the app's
    (package,) = os.listdir(expert)
    for name in [name for name in sys.modules if name == "main" or name.partition(".")[0] == package]:
        del sys.modules[name]
    importlib.import_module(package).__path__.insert(0, os.path.join(expert, package))
    second = run()
    files = [module.__file__ for name, module in sys.modules.items() if name.startswith(package + ".")]
    assert any(file.startswith(expert) for file in files), files
    assert second.count("\\n") == first.count("\\n"), second
"""


@pytest.mark.torch
@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_app_runs_and_repeats_itself_and_so_does_its_expert_version(app: Path) -> None:
    """That both versions print the same is for `benchmarks/speedup/experts.py`: on another machine another rounding may
    pick another token."""
    pytest.importorskip("torch")
    truth = json.loads((app / "faults.json").read_text(encoding="utf-8"))
    command = [sys.executable, "-c", TWICE, str(app), str(EXPERTS / app.name), *truth["quick"]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    assert "checksum " in done.stdout


@pytest.mark.parametrize("app", APPS, ids=lambda app: app.name)
def test_every_app_with_faults_has_an_expert_version_of_some_of_its_modules(app: Path) -> None:
    faults = json.loads((app / "faults.json").read_text(encoding="utf-8"))["faults"]
    files = sorted((EXPERTS / app.name).rglob("*.py"))
    assert bool(files) == bool(faults)
    for file in files:
        original = app / file.relative_to(EXPERTS / app.name)
        assert original.is_file() and original.read_text(encoding="utf-8") != file.read_text(encoding="utf-8")
