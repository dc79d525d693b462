"""The planted programs of the profile benchmark: their truth names real places and its counts are what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parents[2] / "corpus" / "planted"
PROGRAMS = sorted(json.loads((FOLDER / "truth.json").read_text(encoding="utf-8")))

LOCATE = """
import ast, sys
from pathlib import Path
from truth import locate, plants
total = 0
for name in sys.argv[1:]:
    program = Path(name)
    tree = ast.parse(program.read_text())
    places = [locate(tree, plant) for plant in plants(program)]
    total += len(places)
print(total)
"""


def test_every_planted_place_is_there_once() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOCATE, *(str(FOLDER / f"{name}.py") for name in PROGRAMS)],
        cwd=FOLDER, env={"PYTHONPATH": str(FOLDER)}, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert len(PROGRAMS) >= 4
    assert int(done.stdout) >= 20


@pytest.mark.torch
def test_truth_run_counts_what_it_claims() -> None:
    pytest.importorskip("torch")
    done = subprocess.run(
        [sys.executable, str(FOLDER / "detect.py"), "--truth", "--seconds", "0.3"],
        capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    truth = json.loads(done.stdout)
    assert truth["steps_per_request"] == 8
    for plant in truth["plants"]:
        assert plant["measured_per_request"] == plant["per_request"], plant["id"]
        assert plant["host_ms"]["median"] > 0
