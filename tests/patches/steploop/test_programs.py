"""The four programs, patched by the command line: the same output in captured form and after a failed capture."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytest.importorskip("torch")
pytestmark = pytest.mark.torch
ROOT = Path(__file__).resolve().parents[3]


def _load() -> ModuleType:
    spec = importlib.util.spec_from_file_location("steploop_benchmark", ROOT / "benchmarks/patches/steploop.py")
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


bench = _load()
SHORT = {
    "chat": ("--requests", "4", "--max-tokens", "8"),
    "speech": ("--frames", "5"),
    "denoise": ("--steps", "5", "--images", "2"),
    "stream": ("--seconds", "1.0"),
}


@pytest.mark.parametrize("program", bench.PROGRAMS, ids=lambda program: program.name)
def test_outputs_stay(program: object, tmp_path: Path) -> None:
    name = program.name  # type: ignore[attr-defined]
    before, after, _ = bench.patched_copy(program, tmp_path)
    sums = {}
    for label, folder, mode in (
        ("before", before, "plain"),
        ("static", after, "static"),
        ("failing", after, "failing"),
    ):
        if label == "failing" and name != "chat":
            continue
        worker = bench.Worker(folder, SHORT[name], mode)
        sums[label] = worker.run()
        worker.stop()
    assert len({result["checksum"] for result in sums.values()}) == 1
    assert sums["static"]["captures"] >= 1 and sums["static"]["replays"] > 1
    assert "failing" not in sums or sums["failing"]["failed"] == 1
