from __future__ import annotations

import os
import pickle
import sqlite3
from collections import Counter, OrderedDict
from enum import Enum
from pathlib import Path
from typing import Any

import pytest

from awp_lint.detector.cli import main
from awp_lint.detector.finding import Confidence, Problem, Span
from awp_lint.detector.project import stored
from awp_lint.detector.project.cache import Cache
from awp_lint.detector.project.stored import StoredError, dumps, loads
from awp_lint.detector.semantics.values import Device, Kind, Value

OURS: list[Any] = [
    Span(1, 2, 3, 4),
    Problem("a.py", "b", 3),
    {"x": (1, 2.5, None, b"y", frozenset({1}), {2}, [True])},
    Value(Kind.TENSOR, Device.HOST),
    Confidence.HIGH,
]


@pytest.mark.parametrize("data", OURS)
def test_our_data_comes_back(data: Any) -> None:
    assert loads(dumps(data)) == data


class Odd(Enum):
    """Written as Python 3.11.2 writes every enumeration."""

    ONE = 1

    def __reduce_ex__(self, protocol: Any) -> Any:
        return getattr, (type(self), self.name)


def test_members_of_enumerations_are_written_by_value_where_python_would_not(monkeypatch: pytest.MonkeyPatch) -> None:
    assert b"getattr" in dumps([Odd.ONE])
    monkeypatch.setattr(stored, "_BY_GETATTR", True)
    assert b"getattr" not in dumps([Odd.ONE])
    assert all(loads(dumps(data)) == data for data in OURS)


class Evil:
    """Runs what it was given when it is read."""

    def __init__(self, function: Any, *arguments: Any) -> None:
        self.call = function, arguments

    def __reduce__(self) -> Any:
        return self.call


def test_nothing_is_called_and_nothing_else_imported(tmp_path: Path) -> None:
    mark = tmp_path / "mark"
    attempts = [
        pickle.dumps(Evil(os.system, f"touch {mark}")),
        pickle.dumps(Evil(open, str(mark), "w")),
        pickle.dumps(Evil(eval, f"open({str(mark)!r}, 'w')")),
        pickle.dumps(Evil(Path.touch, mark)),
        pickle.dumps(Cache),
        pickle.dumps(main),
        pickle.dumps(Counter()),
        pickle.dumps(OrderedDict()),
        b"cawp_lint.detector.project.cache\nos.system\n(S'touch " + str(mark).encode() + b"'\ntR.",
        b"\x80\x04\x8c\x20awp_lint.detector.project.reading\x8c\x09os.system\x93.",
        b"\x80\x04\x8c\x21awp_lint.detector.project.reading\x8c\x02os\x93.",
        b"\x80\x04\x8c\x12awp_lint.detector.cli\x8c\x04main\x93.",
        b"cawp_lint.detector.profiling.agent.inject.sitecustomize\nx\n.",
        b"cthis_module_is_not_there\nx\n.",
        b"",
        b"\x80",
        b"nonsense",
        dumps(OURS)[:-3],
    ]
    for data in attempts:
        with pytest.raises(StoredError, match="the cache holds") as caught:
            loads(data)
        assert "\n" not in str(caught.value)
    assert not mark.exists()


def test_a_cache_that_somebody_filled_ends_the_scan_with_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "a.py").write_text("import torch\nx = torch.ones(3)\n")
    monkeypatch.setenv("AWP_LINT_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    assert main(["a.py", "--quiet"]) == 0
    database = sqlite3.connect(tmp_path / "cache" / "results-1.sqlite")
    mark = tmp_path / "mark"
    assert database.execute("UPDATE entries SET data = ?", (pickle.dumps(Evil(os.system, f"touch {mark}")),)).rowcount
    database.commit()
    database.close()
    assert main(["a.py", "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.count("\n") == 1 and "--no-cache" in said
    assert not mark.exists()
    assert main(["a.py", "--quiet", "--no-cache"]) == 0


@pytest.mark.skipif(not hasattr(os, "geteuid"), reason="needs POSIX")
def test_what_others_can_write_is_no_cache(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    cache = Cache(folder=folder)
    cache.put_many({b"k": b"v"})
    cache.close()
    assert folder.stat().st_mode & 0o777 == 0o700
    for path in (folder, folder / "results-1.sqlite"):
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        shared = Cache(folder=folder)
        assert shared.get_many([b"k"]) == {}
        shared.close()
        path.chmod(mode)
    again = Cache(folder=folder)
    assert again.get_many([b"k"]) == {b"k": b"v"}
    again.close()


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs to be able to give a file away")
def test_what_belongs_to_others_is_no_cache(tmp_path: Path) -> None:
    cache = Cache(folder=tmp_path)
    cache.put_many({b"k": b"v"})
    cache.close()
    os.chown(tmp_path / "results-1.sqlite", 12345, 12345)
    foreign = Cache(folder=tmp_path)
    assert foreign.get_many([b"k"]) == {}
    foreign.close()
