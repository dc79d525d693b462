"""The store of results: what comes back, bounds, and files that cannot be used."""

from __future__ import annotations

import multiprocessing
import sqlite3
from pathlib import Path

import pytest

from awp_lint.detector.project import cache as module
from awp_lint.detector.project.cache import Cache, cache_folder, key


def test_what_is_put_comes_back(tmp_path: Path) -> None:
    first = Cache(folder=tmp_path)
    first.put_many({b"a": b"1", b"b": b"2"})
    first.put_many({b"a": b"3"})
    first.close()
    assert Cache(folder=tmp_path).get_many([b"a", b"b", b"c"]) == {b"a": b"3", b"b": b"2"}


def test_switched_off(tmp_path: Path) -> None:
    off = Cache(False, tmp_path)
    off.put_many({b"a": b"1"})
    assert off.get_many([b"a"]) == {} and list(tmp_path.iterdir()) == []


def test_unusable_folders_and_files_hold_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    blocked = Cache(folder=tmp_path / "file" / "below")
    blocked.put_many({b"a": b"1"})
    assert blocked.get_many([b"a"]) == {}
    broken = tmp_path / "broken"
    Cache(folder=broken).close()
    for file in broken.iterdir():
        file.write_bytes(b"no database" * 100)
    spoilt = Cache(folder=broken)
    spoilt.put_many({b"a": b"1"})
    assert spoilt.get_many([b"a"]) == {}


def test_size_is_bounded_and_the_newest_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "LIMIT_BYTES", 200_000)
    store = Cache(folder=tmp_path)
    now = [1_000]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    for number in range(20):
        now[0] += 10
        store.put_many({bytes([number]): b"x" * 20_000})
    kept = store.get_many([bytes([number]) for number in range(20)])
    assert bytes([19]) in kept and bytes([0]) not in kept
    assert sum(map(len, kept.values())) <= 200_000


def test_used_entries_are_marked_once_a_day(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1_000_000]
    monkeypatch.setattr(module.time, "time", lambda: now[0])
    store = Cache(folder=tmp_path)
    store.put_many({b"a": b"1"})
    for later in (1_000, 90_000):
        now[0] += later
        store.get_many([b"a"])
    (path,) = tmp_path.glob("*.sqlite")
    assert sqlite3.connect(path).execute("SELECT used FROM entries").fetchall() == [(1_091_000,)]


def _write(folder: str, number: int) -> None:
    store = Cache(folder=Path(folder))
    for index in range(30):
        store.put_many({f"{number} {index}".encode(): bytes(100)})
    store.close()


def test_runs_at_the_same_time(tmp_path: Path) -> None:
    context = multiprocessing.get_context("spawn")
    runs = [context.Process(target=_write, args=(str(tmp_path), number)) for number in range(3)]
    for run in runs:
        run.start()
    for run in runs:
        run.join(60)
    assert [run.exitcode for run in runs] == [0, 0, 0]
    wanted = [f"{number} {index}".encode() for number in range(3) for index in range(30)]
    assert len(Cache(folder=tmp_path).get_many(wanted)) == 90


def test_keys_depend_on_every_part_and_its_length() -> None:
    assert key("ab", "c") != key("a", "bc") != key("abc")
    assert key("a", b"b") == key(b"a", "b")


def test_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(tmp_path / "mine"))
    assert cache_folder() == tmp_path / "mine"
    monkeypatch.delenv("AWP_LINT_CACHE_DIR")
    assert cache_folder().name == "awp-lint"
