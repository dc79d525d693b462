from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.errors import UsageError
from awp_lint.detector.profiling.snapshot import load

MB = 1 << 20


def frames(*places: str) -> list[dict[str, Any]]:
    return [{"filename": f, "name": n, "line": int(line)} for f, n, line in (place.split(":") for place in places)]


LOADING = frames("/v/torch/_tensor.py:to:9", "/v/torch/nn/modules/module.py:_apply:8", "/app/main.py:load:3")
CACHE = frames("/app/kv_cache.py:grow:12", "/app/main.py:serve:40")
STEP = frames("/v/torch/nn/functional.py:linear:1", "/app/model.py:forward:77")


def event(action: str, address: int, size: int, where: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    return {"action": action, "addr": address, "size": size, "stream": 0, "frames": where or []}


def timed(history: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A second apart."""
    return [{**one, "time_us": 1_700_000_000_000_000 + 1_000_000 * number} for number, one in enumerate(history)]


def snapshot(history: list[dict[str, Any]], blocks: list[tuple[int, int, str]], total: int) -> dict[str, Any]:
    """One segment with these blocks: (address, size, state)."""
    made = [{"address": a, "size": s, "requested_size": s, "state": state, "frames": []} for a, s, state in blocks]
    segment = {"device": 0, "address": 0, "total_size": total, "blocks": made}
    return {"segments": [segment], "device_traces": [history], "allocator_settings": {}}


def written(path: Path, value: Any) -> str:
    path.write_bytes(pickle.dumps(value))
    return str(path)


def test_the_peak_is_found_and_told_apart(tmp_path: Path) -> None:
    # 100 MB were there before; then weights 50, cache 30; a step takes 40 and frees it; at the end the cache takes 5.
    history = [
        event("segment_alloc", 0, 250 * MB),
        event("alloc", 1, 50 * MB, LOADING), event("alloc", 2, 30 * MB, CACHE), event("alloc", 3, 40 * MB, STEP),
        event("free_requested", 3, 40 * MB), event("free_completed", 3, 40 * MB), event("alloc", 4, 5 * MB, CACHE),
    ]  # fmt: skip
    blocks = [(0, 100 * MB, "active_allocated"), (1, 50 * MB, "active_allocated"), (2, 30 * MB, "active_allocated"),
              (3, 40 * MB, "inactive"), (4, 5 * MB, "active_allocated")]  # fmt: skip
    found = load(written(tmp_path / "m.pickle", snapshot(history, blocks, 300 * MB)))
    assert found["peak_bytes"] == 220 * MB and found["reserved_bytes"] == 300 * MB and found["recorded"]
    assert found["kinds"] == {
        "weights": 150 * MB, "kv": 30 * MB, "activations": 40 * MB, "unknown": 0, "fragmentation": 80 * MB,
    }  # fmt: skip
    assert found["fragmentation"] == pytest.approx(80 / 300, abs=1e-4)
    assert {"kind": "activations", "place": "app/model.py:forward:77", "bytes": 40 * MB} in found["places"]
    assert {"kind": "weights", "place": "app/main.py:load:3", "bytes": 50 * MB} in found["places"]


def test_reserved_memory_is_that_of_the_peak(tmp_path: Path) -> None:
    history = [
        event("segment_alloc", 0, 100 * MB), event("alloc", 1, 90 * MB, STEP), event("free_completed", 1, 90 * MB),
        event("segment_free", 0, 100 * MB), event("segment_alloc", 0, 20 * MB),
    ]  # fmt: skip
    found = load(written(tmp_path / "m.pickle", snapshot(timed(history), [(1, 20 * MB, "inactive")], 20 * MB)))
    assert (found["peak_bytes"], found["reserved_bytes"]) == (90 * MB, 100 * MB)
    assert found["curve"]["used"] == [0, 90 * MB, 0, 0, 0]
    assert found["curve"]["reserved"] == [100 * MB, 100 * MB, 100 * MB, 0, 20 * MB]
    assert found["curve"]["t_s"] == pytest.approx([0, 1, 2, 3, 4], abs=0.02)


def test_without_a_history_it_is_the_moment(tmp_path: Path) -> None:
    found = load(written(tmp_path / "m.pickle", snapshot([], [(0, 10 * MB, "active_allocated")], 16 * MB)))
    assert found["peak_bytes"] == 10 * MB and not found["recorded"] and found["kinds"]["weights"] == 10 * MB
    assert found["curve"] is None


class Evil:
    def __reduce__(self) -> Any:
        return os.system, ("touch /tmp/never",)


@pytest.mark.parametrize("value", [Evil(), [1], {"segments": 3}, {"segments": [{"blocks": [{}]}]}])
def test_what_is_no_snapshot_is_refused_and_never_run(tmp_path: Path, value: Any) -> None:
    with pytest.raises(UsageError, match="snapshot"):
        load(written(tmp_path / "m.pickle", value))
    (tmp_path / "m.pickle").write_bytes(b"\x80\x05garbage")
    with pytest.raises(UsageError, match="not a memory snapshot"):
        load(str(tmp_path / "m.pickle"))
