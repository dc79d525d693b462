"""Read an Nsight Systems SQLite export (``nsys export --type sqlite``) into a :class:`Trace`.

Only what the analysis uses: runtime and driver calls, kernels, copies, memsets, whole graphs, NVTX ranges. Which
columns a table has depends on the version and on what was collected, so that every optional one is asked for first.
"""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np

from awp_lint.detector.profiling.kineto import TraceError
from awp_lint.detector.profiling.timeline import Cat, Trace

# What the numbers mean where the export has no enumeration tables.
_OPERATIONS = {1: "HtoD", 2: "DtoH", 8: "DtoD", 10: "PtoP"}
_KINDS = {0: "Pageable", 1: "Pinned", 2: "Device"}
_TID_BITS = 24  # a global thread id holds the process above and the thread in its low bits


def load(path: str | Path) -> Trace:
    """Read an export. Raises :class:`TraceError` where the file is none."""
    try:
        with closing(sqlite3.connect(f"file:{Path(path).resolve()}?mode=ro", uri=True)) as database:
            return _Export(database).trace()
    except sqlite3.Error as error:
        raise TraceError(f"{path}: not an Nsight Systems export ({error})") from error


class _Export:
    def __init__(self, database: sqlite3.Connection) -> None:
        self.database = database
        self.tables = {name for (name,) in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not any(name.startswith(("CUPTI_", "NVTX_")) for name in self.tables):
            raise sqlite3.DatabaseError("no table of CUDA activity")
        self.strings = dict(database.execute("SELECT id, value FROM StringIds")) if "StringIds" in self.tables else {}
        self.names: dict[str, int] = {}
        self.rows: list[tuple[int, ...]] = []  # category, name, start, end, thread, device, stream, correlation, size

    def trace(self) -> Trace:
        pid = self._process()
        self._calls(pid)
        self._device("CUPTI_ACTIVITY_KIND_KERNEL", Cat.KERNEL, pid)
        self._device("CUPTI_ACTIVITY_KIND_GRAPH_TRACE", Cat.KERNEL, pid)
        self._device("CUPTI_ACTIVITY_KIND_MEMSET", Cat.MEMSET, pid)
        self._copies(pid)
        self._ranges(pid)
        table = np.array(self.rows, np.int64).reshape(-1, 9)
        table = table[np.argsort(table[:, 2], kind="stable")]
        category, name, start, end, thread, device, stream, correlation, size = table.T
        base = self._epoch()
        return Trace(
            list(self.names), category.astype(np.uint8), name.astype(np.int32), start + base, end + base, thread.copy(),
            device.astype(np.int16), stream.copy(), correlation.copy(), size.copy(), pid or 0, self._devices(),
        )  # fmt: skip

    def _columns(self, table: str) -> set[str]:
        return {row[1] for row in self.database.execute(f'PRAGMA table_info("{table}")')}

    def _select(self, table: str, wanted: tuple[str, ...]) -> list[tuple[Any, ...]]:
        """Rows with the wanted columns; a column that the table does not have is None."""
        if table not in self.tables:
            return []
        there = self._columns(table)
        columns = ", ".join(f'"{column}"' if column in there else "NULL" for column in wanted)
        return list(self.database.execute(f'SELECT {columns} FROM "{table}"'))

    def _process(self) -> int | None:
        """The process with the most device work; None where the export does not say."""
        counts: dict[int, int] = {}
        for (owner,) in self._select("CUPTI_ACTIVITY_KIND_KERNEL", ("globalPid",)):
            if owner is not None:
                counts[owner] = counts.get(owner, 0) + 1
        return (max(counts, key=counts.__getitem__) >> _TID_BITS) & 0xFFFFFF if counts else None

    def _name(self, text: object) -> int:
        return self.names.setdefault(str(text), len(self.names))

    def _string(self, number: int | None, fallback: str) -> int:
        return self._name(self.strings.get(number, fallback))

    def _calls(self, pid: int | None) -> None:
        wanted = ("start", "end", "globalTid", "correlationId", "nameId")
        for start, end, owner, correlation, name in self._select("CUPTI_ACTIVITY_KIND_RUNTIME", wanted):
            if pid is None or _pid(owner) == pid:
                tid = (owner or 0) & 0xFFFFFF
                self.rows.append((Cat.RUNTIME, self._string(name, "?"), start, end, tid, -1, -1, correlation or 0, 0))

    def _device(self, table: str, category: Cat, pid: int | None) -> None:
        wanted = ("start", "end", "deviceId", "streamId", "correlationId", "globalPid", "demangledName", "shortName")
        for start, end, device, stream, correlation, owner, name, short in self._select(table, wanted):
            if pid is None or owner is None or _pid(owner) == pid:
                label = self._string(name if name is not None else short, "graph" if "GRAPH" in table else "memset")
                self.rows.append((category, label, start, end, 0, device or 0, stream or 0, correlation or 0, 0))

    def _copies(self, pid: int | None) -> None:
        operations = self._enumeration("ENUM_CUDA_MEMCPY_OPER", _OPERATIONS)
        kinds = self._enumeration("ENUM_CUDA_MEM_KIND", _KINDS)
        wanted = (
            "start", "end", "deviceId", "streamId", "correlationId", "globalPid", "bytes", "copyKind", "srcKind",
            "dstKind",
        )  # fmt: skip
        for start, end, device, stream, correlation, owner, size, kind, source, target in self._select(
            "CUPTI_ACTIVITY_KIND_MEMCPY", wanted
        ):
            if pid is None or owner is None or _pid(owner) == pid:
                way = operations.get(kind, "?").replace("-to-", "to").replace("Host", "H").replace("Device", "D")
                name = f"Memcpy {way} ({kinds.get(source, '?')} -> {kinds.get(target, '?')})"
                row = (
                    Cat.MEMCPY,
                    self._name(name),
                    start,
                    end,
                    0,
                    device or 0,
                    stream or 0,
                    correlation or 0,
                    size or 0,
                )
                self.rows.append(row)

    def _ranges(self, pid: int | None) -> None:
        wanted = ("start", "end", "globalTid", "text", "textId")
        for start, end, owner, text, number in self._select("NVTX_EVENTS", wanted):
            if end is not None and (pid is None or _pid(owner) == pid):
                label = self._name(text) if text is not None else self._string(number, "?")
                self.rows.append((Cat.ANNOTATION, label, start, end, (owner or 0) & 0xFFFFFF, -1, -1, 0, 0))

    def _enumeration(self, table: str, known: dict[int, str]) -> dict[int, str]:
        return {int(i): str(label) for i, label in self._select(table, ("id", "label")) if label} or known

    def _epoch(self) -> int:
        rows = self._select("TARGET_INFO_SESSION_START_TIME", ("utcEpochNs",))
        return int(rows[0][0]) if rows and rows[0][0] else 0

    def _devices(self) -> tuple[dict[str, object], ...]:
        found = self._select("TARGET_INFO_GPU", ("id", "name", "smCount"))
        return tuple({"id": number, "name": name, "numSms": count} for number, name, count in found)


def _pid(owner: int | None) -> int:
    return ((owner or 0) >> _TID_BITS) & 0xFFFFFF
