"""The four programs, patched by the command line: the same output in captured form and after a failed capture."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from awp_lint.detector.cli import main

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


def tool(arguments: list[str], folder: Path) -> str:
    """awp-lint in this process."""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        assert main(arguments) == 0
    return ""


@pytest.fixture(scope="module")
def worker() -> Iterator[Any]:
    process = bench.Worker()
    yield process
    process.stop()


@pytest.mark.parametrize("program", bench.PROGRAMS, ids=lambda program: program.name)
def test_outputs_stay(program: Any, worker: Any, tmp_path: Path) -> None:
    arguments = SHORT[program.name]
    before, after, _ = bench.patched_copy(program, tmp_path, tool)
    original = worker.run(before, arguments)
    static = worker.run(after, arguments, "static")
    failing = worker.run(after, arguments, "failing")
    assert original["checksum"] == static["checksum"] == failing["checksum"]
    assert static["captures"] >= 1 and static["replays"] > 1
    assert failing["failed"] >= 1 and failing["replays"] == 0
