"""Files of the agent that many threads need for the first time at once."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from awp_lint.detector.profiling import reader
from awp_lint.detector.profiling.agent import ring
from awp_lint.detector.profiling.agent.state import State


def state_in(folder: Path) -> State:
    record: Any = SimpleNamespace(path=lambda name: str(folder / name), error=lambda *words: None)
    plan: Any = SimpleNamespace(size=8, late=-1)
    return State(record, plan, lambda: None, lambda: None)


def test_first_ticks_of_many_threads_go_to_one_file(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for turn in range(20):
            folder = tmp_path / str(turn)
            folder.mkdir()
            state = state_in(folder)
            gate = threading.Barrier(8)

            def first(state: State = state, gate: threading.Barrier = gate) -> None:
                gate.wait()
                state.reached((1, 5))
                for now in range(1, 51):
                    state.tick(now, (3,))

            threads = [threading.Thread(target=first) for _ in range(8)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            assert sorted(os.listdir(folder)) == ["reached.bin", "ticks.ring"]
            events, dropped = reader.read_ring(folder / "ticks.ring")
            assert len(events) == 8 * 50 and not dropped
            assert state.ticked() == {3: 400}
            assert (folder / "reached.bin").stat().st_size == 64
    finally:
        sys.setswitchinterval(before)


def test_a_file_that_is_there_is_never_cut_short(tmp_path: Path) -> None:
    place = str(tmp_path / "ring")
    first = ring.Ring(place)
    with pytest.raises(FileExistsError):
        ring.Ring(place)
    first.write(1, (2,))
    assert first.written() == 1


def test_no_ring_on_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "statvfs", lambda path: SimpleNamespace(f_bavail=10, f_frsize=4096))
    with pytest.raises(OSError, match="No space left"):
        ring.Ring(str(tmp_path / "ring"))
    assert os.listdir(tmp_path) == []
