"""``--memory``: the allocator's account in a run, and the clear word where there is none."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from programs import plan_of

from awp_lint.detector.profiling.allocator import mbu_of_weights, profile_object
from awp_lint.detector.profiling.launch import RunOptions, run_profiled
from awp_lint.detector.profiling.session import MarkRecords, ProcessSession, Window, WindowKind
from awp_lint.detector.profiling.units import requests

TORCH = """\
import types
__version__ = "2.9.0"
version = types.SimpleNamespace(cuda="13.0")
autograd = types.SimpleNamespace(profiler=types.SimpleNamespace())
count = [0]
class Tensor:
    is_cuda = True
    def __init__(self, size, place): self.size, self.place = size, place
    def data_ptr(self): return self.place
    def numel(self): return self.size
    def element_size(self): return 2
class Module:
    def __init__(self, **parameters):
        self._parameters, self._buffers = parameters, {"none": None}
nn = types.SimpleNamespace(Module=Module)
def memory_stats(device):
    return {
        "allocated_bytes.all.current": 10, "allocated_bytes.all.peak": 5000, "reserved_bytes.all.peak": 8000,
        "allocation.all.allocated": count[0], "segment.all.allocated": 3, "num_alloc_retries": 0, "num_ooms": 0,
    }
cuda = types.SimpleNamespace(is_initialized=lambda: CUDA, device_count=lambda: 1, memory_stats=memory_stats,
    get_device_properties=lambda n: None, memory_reserved=lambda n: 0)
"""
PROGRAM = """\
import glob, json, sys, time
sys.path.insert(0, sys.argv[2])
import torch
shared = torch.Tensor(100, 1)
model = [torch.nn.Module(w=shared), torch.nn.Module(w=shared, b=torch.Tensor(28, 2))]

def step():
    torch.count[0] += 7
    time.sleep(0.001)

def over():
    for name in glob.glob(sys.argv[1] + "/p*/process.json"):
        with open(name) as file:
            state = json.load(file)
        kinds = [w["kind"] for w in state["windows"] if w["complete"]]
        return kinds.count("baseline") >= 3 and (not CUDA or "weights" in state.get("memory", {}))

while not over():
    for n in range(5):
        step()
"""


def run(folder: Path, cuda: bool) -> ProcessSession:
    (folder / "lib" / "torch").mkdir(parents=True)
    (folder / "lib" / "torch" / "__init__.py").write_text(TORCH.replace("CUDA,", f"{cuda},"))
    program = folder / "program.py"
    program.write_text(PROGRAM.replace("CUDA", str(cuda)))
    session = folder / "session"
    session.mkdir()
    plan = plan_of(program, [("loop", "for n in range(5)", "step")])
    command = [sys.executable, str(program), str(session), str(folder / "lib")]
    found = run_profiled(command, plan, RunOptions(directory=str(session), memory=True, limit=150.0))
    assert found.exit_code == 0, found.notes
    (process,) = found.processes
    return process


def test_the_account_of_a_run(tmp_path: Path) -> None:
    found = profile_object(run(tmp_path, cuda=True))
    assert found is not None
    assert (found["missing"], found["peak_bytes"], found["reserved_bytes"]) == (None, 5000, 8000)
    assert found["weights_bytes"] == 2 * (100 + 28)  # the shared ones once
    assert found["allocations"] == pytest.approx(7, rel=0.35)  # windows begin and end within steps
    assert (found["device_allocations"], found["retries"], found["out_of_memory"]) == (0, 0, 0)


def test_a_cpu_says_that_it_has_none(tmp_path: Path) -> None:
    assert profile_object(run(tmp_path, cuda=False)) == {
        "missing": "the program uses no CUDA device, and torch keeps no account of memory on a CPU"
    }


def test_a_unit_s_share_of_the_counts() -> None:
    before = {"allocations": 100, "segments": 5}
    windows = (
        Window(WindowKind.BASELINE, 0, 9, (1, 2, 3, 4), memory=(before, {"allocations": 128, "segments": 5})),
        Window(WindowKind.BASELINE, 10, 19, (11,), memory=(before, {"allocations": 900, "segments": 9})),
        Window(WindowKind.MARKS, 20, 29, (21, 22)),
    )
    process = ProcessSession(
        1, 0, (), "3.12", None, True, (), None, "monitoring", (), {}, frozenset(), {}, windows, MarkRecords(),
        memory={"allocated_peak": 1, "reserved_peak": 2, "retries": 0, "ooms": 0, "allocations": 0, "segments": 0},
    )  # fmt: skip
    found = profile_object(process)
    assert found is not None
    assert (found["allocations"], found["device_allocations"], found["weights_bytes"]) == (7.0, 0.0, None)
    assert profile_object(ProcessSession(**{**_fields(process), "memory": None})) is None


def _fields(process: ProcessSession) -> dict[str, object]:
    return {name: getattr(process, name) for name in ProcessSession.__slots__}


def test_bandwidth_used_by_the_weights_alone() -> None:
    """16 GB of weights in a step of 5 ms are 3.2 TB/s, two thirds of 4.8."""
    telemetry = {"devices": [{"name": "NVIDIA H200"}]}
    assert mbu_of_weights({"weights_bytes": 16_000_000_000}, 5.0, telemetry) == pytest.approx(2 / 3)
    assert mbu_of_weights({"weights_bytes": 16_000_000_000}, 5.0, {"devices": [{"name": "unheard of"}]}) is None
    assert mbu_of_weights(None, 5.0, telemetry) is None


def test_prefill_is_told_from_decode() -> None:
    """Requests of 30 ms before the loop or within its first step, then four more tokens of 10 ms."""
    ms = 1_000_000
    before = [30, 40, 50, 60, 70]  # the loop's steps, behind a prefill of 30 ms
    inside = [0, 30, 40, 50, 60]  # its first step holds the prefill
    begins = [0, 80, 160, 240]
    for steps, first in ((before, 30.0), (inside, 30.0)):
        ticks = tuple((begin + step) * ms for begin in begins for step in steps)
        window = Window(WindowKind.BASELINE, 0, 400 * ms, ticks, requests=tuple(begin * ms for begin in begins))
        found = requests([window])
        assert [(r.first, r.token, r.tokens) for r in found] == [(first, 10.0, 5)] * 3
        assert {r.decode for r in found} == {50.0 if steps is before else 40.0}
