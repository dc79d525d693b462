"""Read the Chrome-trace JSON that torch.profiler (Kineto) writes, plain or gzipped, into a :class:`Trace`.

A trace can hold millions of events, for which ``json`` is too slow and too large. Kineto writes every event in one
layout, so the text is cut into chunks and a chunk is read by array operations: keys are found as 8-byte words behind a
quote (inside a JSON string a quote is escaped, so that no text can pass for a key), and numbers are read column by
column. A chunk that does not follow the layout goes through ``json``, event by event; a file that holds no such event
at all is read whole.
"""

from __future__ import annotations

import gzip
import json
import math
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, cast

import numpy as np
import numpy.typing as npt

from awp_lint.detector.profiling.timeline import CATEGORIES, Bools, Cat, Ints, Trace

_CHUNK = 16 << 20
_PAD = b" " * 32  # so that a word or a number may be looked at beyond the chunk's end
_BOUNDARY = re.compile(rb'\{\s*"ph"')
_LONGEST = 500_000_000  # bytes that are held at once; compressed ones may stand for any number
_MOST = 1 << 61
_DECODER = json.JSONDecoder(strict=False)

Words = npt.NDArray[np.uint64]
Bytes = npt.NDArray[np.uint8]


class TraceError(ValueError):
    """The file is no trace that can be read; the message is one line for the user."""


def _word(text: bytes) -> np.uint64:
    return np.uint64(int.from_bytes(text[:8], "little"))


_MASK7 = np.uint64((1 << 56) - 1)
_MASK6 = np.uint64((1 << 48) - 1)
_TAILS = np.array([(1 << 8 * count) - 1 for count in range(9)], np.uint64)  # the first bytes of a word
_CATEGORY_WORDS = [
    (_word(spelling + b'"'), cat)
    for word, cat in CATEGORIES.items()
    for spelling in {word.encode(), word.capitalize().encode()}
]


def load(path: str | Path) -> Trace:
    """Read a Kineto trace. Raises :class:`TraceError` where the file is none, and ``OSError``."""
    path = Path(path)
    with path.open("rb") as raw:
        zipped = raw.read(2) == b"\x1f\x8b"
    try:
        with path.open("rb") as plain:
            stream = cast(BinaryIO, gzip.GzipFile(fileobj=plain)) if zipped else plain
            return _read(stream, path)
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise TraceError(f"{path}: the compressed trace is damaged ({error})") from error


def _read(stream: BinaryIO, path: Path) -> Trace:
    text = stream.read(_CHUNK)
    opening = re.search(rb'"traceEvents"\s*:\s*\[', text)
    if opening is None or not _BOUNDARY.match(text[opening.end() : opening.end() + 256].lstrip()):
        if text.lstrip()[:1] not in (b"{", b"["):
            raise TraceError(f"{path}: not a Kineto trace (no JSON)")
        text += stream.read(_LONGEST)
        if len(text) > _LONGEST:
            raise TraceError(f"{path}: more than {_LONGEST // 10**6} MB that are not in Kineto's layout")
        return _read_whole(text, path)
    base_ns, devices = _header(text[: opening.start()])
    columns = _Columns()
    text = text[opening.end() :]
    while chunk := stream.read(_CHUNK):
        cut = _last_boundary(text)
        if cut:
            columns.add(text[:cut])
        text = text[cut:] + chunk
        if len(text) > _LONGEST:
            raise TraceError(f"{path}: an event of more than {_LONGEST // 10**6} MB")
    columns.add(text)
    tail = text[_last_boundary(text) :]
    if re.search(rb"\}\s*\]", tail) is None:
        columns.problems.append("the trace file ends in the middle (it was cut off while being written)")
    if base_ns == 0 and (late := re.search(rb'"baseTimeNanoseconds"\s*:\s*(\d+)', tail)):
        base_ns = _whole(late[1].decode(), 0)
    return columns.trace(base_ns, devices)


def _last_boundary(text: bytes) -> int:
    """Where the last event begins, which may be incomplete; 0 when there is none to cut at."""
    size = 1 << 12
    while True:
        at = max(len(text) - size, 0)
        found = [m.start() for m in _BOUNDARY.finditer(text, at)]
        if found or at == 0:
            return found[-1] if found else 0
        size *= 8


class _Columns:
    """Columns under construction: one tuple of arrays a chunk."""

    def __init__(self) -> None:
        self.names: dict[bytes, int] = {}
        self.parts: list[tuple[npt.NDArray[np.generic], ...]] = []
        self.pids: dict[int, int] = {}
        self.problems: list[str] = []

    def add(self, text: bytes) -> None:
        """Append the complete events of a stretch of text."""
        if not self._fast(text):
            self.add_events(_events(text))

    def add_events(self, events: Iterable[dict[str, object]]) -> None:
        """Append events that ``json`` has read."""
        rows = [row for event in events if (row := _row(event)) is not None]
        if not rows:
            return
        pids, categories, names, *numbers = zip(*rows, strict=True)
        for pid, kind in zip(pids, categories, strict=True):
            if kind == Cat.CPU_OP:
                self.pids[pid] = self.pids.get(pid, 0) + 1
        start, end, thread, device, stream, correlation, size = (np.array(c, np.int64) for c in numbers)
        category, name = np.array(categories, np.uint8), self._ids(list(names))
        self._append(category, name, start, end, thread, device, stream, correlation, size)

    def _ids(self, names: list[bytes]) -> npt.NDArray[np.int32]:
        table = self.names
        return np.fromiter((table.setdefault(n, len(table)) for n in names), np.int32, len(names))

    def _names(self, text: bytes, words: Words, start: Ints, end: Ints) -> npt.NDArray[np.int32]:
        """Name numbers of ``text[start:end]``: names are hashed by arrays, and each different one is read once."""
        length = end - start
        mixed = length.astype(np.uint64)
        rows = np.arange(start.size)
        offset = 0
        while rows.size:
            left = length[rows] - offset
            word = words[start[rows] + offset] & _TAILS[np.minimum(left, 8)]
            value = (mixed[rows] ^ word) * np.uint64(0x9E3779B97F4A7C15)
            mixed[rows] = value ^ (value >> np.uint64(29))
            offset += 8
            rows = rows[left > 8]
        _, first, inverse = np.unique(mixed, return_index=True, return_inverse=True)
        distinct = [text[a:b] for a, b in zip(start[first].tolist(), end[first].tolist(), strict=True)]
        return self._ids(distinct)[inverse]

    def _append(
        self, category: npt.NDArray[np.uint8], name: npt.NDArray[np.int32], start: Ints, end: Ints, thread: Ints,
        device: Ints, stream: Ints, correlation: Ints, size: Ints,
    ) -> None:  # fmt: skip
        columns = (category, name, start, end, thread, device.astype(np.int16), stream, correlation, size)
        keep = category != Cat.OTHER
        self.parts.append(tuple(column[keep] for column in columns))

    def _fast(self, text: bytes) -> bool:
        """Read a chunk by array operations; False, and nothing added, where it does not follow Kineto's layout."""
        padded = text + _PAD
        byte = np.frombuffer(padded, np.uint8)
        words: Words = np.ndarray((len(text) + 24,), "<u8", padded, strides=(1,))
        quotes = np.flatnonzero(byte == 34)
        if quotes.size < 2:
            return not text.count(b'"ph"')
        keys = quotes[:-1][byte[quotes[1:] + 1] == 58]  # a quote whose partner is followed by a colon
        word = words[keys]
        seven, six = word & _MASK7, word & _MASK6

        def at(key: bytes) -> Ints:
            """Where the key stands."""
            read = word if len(key) == 8 else seven if len(key) == 7 else six
            return np.asarray(keys[read == _word(key)], np.int64)

        events = at(b'"ph": ')
        if events.size != text.count(b'"ph"'):
            return False
        complete = at(b'"ph": "X')
        if not complete.size:
            return True
        limit = np.append(events, len(text))[np.searchsorted(events, complete) + 1]

        def of(places: Ints, start: Ints, end: Ints) -> tuple[Bools, Ints]:
            """The first of ``places`` in each ``[start, end)``, and whether there is one."""
            if not places.size:
                return np.zeros(start.size, np.bool_), np.zeros(start.size, np.int64)
            index = np.minimum(np.searchsorted(places, start), places.size - 1)
            found = places[index]
            return (found >= start) & (found < end), found

        there = []
        fields = {}
        for key in (b'"cat": "', b'"name": ', b'"pid": ', b'"tid": ', b'"ts": ', b'"dur": '):
            has, place = of(at(key), complete, limit)
            there.append(has)
            fields[key] = place + len(key)
        if not np.all(there):
            return False
        category = _categories(words[fields[b'"cat": "']])
        opening = fields[b'"name": ']
        closing = quotes[np.minimum(np.searchsorted(quotes, opening, side="right"), quotes.size - 1)]
        escaped = np.flatnonzero(byte[closing - 1] == 92)
        for row in escaped:
            whole = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL).match(text, int(opening[row]))
            if whole is None:
                return False
            closing[row] = whole.end() - 1
        names = self._names(text, words, opening + 1, closing)
        start, end = _decimal(byte, fields[b'"ts": ']), _decimal(byte, fields[b'"dur": '])
        tid, pid = _integer(byte, fields[b'"tid": ']), _integer(byte, fields[b'"pid": '])
        if start is None or end is None or tid is None or pid is None:
            return False
        end += start
        numbers = {}
        for key in (b'"device"', b'"stream"', b'"correla', b'"bytes":'):
            has, place = of(at(key), fields[b'"dur": '], limit)
            column = np.zeros(complete.size, np.int64)
            rows = np.flatnonzero(has)
            length = len(b'"correlation": ') if key == b'"correla' else len(b'"bytes": ') if key == b'"bytes":' else 10
            value = _integer(byte, place[rows] + length)
            if value is None:
                return False
            column[rows] = value
            numbers[key] = column
        on_device = (category >= Cat.KERNEL) & (category <= Cat.MEMSET)
        hosts, counts = np.unique(pid[category == Cat.CPU_OP], return_counts=True)
        for host, count in zip(hosts.tolist(), counts.tolist(), strict=True):
            self.pids[host] = self.pids.get(host, 0) + count
        self._append(
            category,
            names,
            start,
            end,
            np.where(on_device, 0, tid),
            np.where(on_device, numbers[b'"device"'], -1),
            np.where(on_device, numbers[b'"stream"'], -1),
            numbers[b'"correla'],
            np.where(category == Cat.MEMCPY, numbers[b'"bytes":'], 0),
        )
        return True

    def trace(self, base_ns: int, devices: tuple[dict[str, object], ...]) -> Trace:
        """The finished trace, sorted by start."""
        types = (np.uint8, np.int32, np.int64, np.int64, np.int64, np.int16, np.int64, np.int64, np.int64)
        if not self.parts:
            self.parts.append(tuple(np.empty(0, t) for t in types))
        order = np.argsort(np.concatenate([part[2] for part in self.parts]), kind="stable")
        category, name, start, end, thread, device, stream, correlation, size = (
            np.concatenate([part[i] for part in self.parts]).astype(t, copy=False)[order] for i, t in enumerate(types)
        )
        self.parts.clear()
        pid = max(self.pids, key=lambda p: self.pids[p], default=0)
        names = [_text(n) for n in self.names]
        return Trace(
            names, category, name, start + base_ns, end + base_ns, thread, device, stream, correlation, size,
            pid, devices, self.problems,
        )  # fmt: skip


def _categories(word: Words) -> npt.NDArray[np.uint8]:
    category = np.zeros(word.size, np.uint8)
    for wanted, cat in _CATEGORY_WORDS:
        length = 8 if int(wanted) >> 56 else 7
        category[(word if length == 8 else word & _MASK7) == wanted] = cat
    return category


def _decimal(byte: Bytes, place: Ints) -> Ints | None:
    """Decimal microseconds at each place, as ns; None where one is not of the form ``123.456``."""
    value = np.zeros(place.size, np.int64)
    fraction = np.full(place.size, -1, np.int64)  # digits seen behind the point, -1 before it
    going = np.ones(place.size, np.bool_)
    for column in range(32):
        char = byte[np.minimum(place + column, byte.size - 1)]
        digit = (char >= 48) & (char <= 57)
        take = going & digit & (fraction < 3)
        value = np.where(take, value * 10 + (char - 48), value)
        fraction += take & (fraction >= 0)
        point = going & (char == 46) & (fraction < 0)
        fraction[point] = 0
        stop = going & ~digit & ~point
        if column == 0 and stop.any():
            return None
        if (stop & ((char == 101) | (char == 69))).any():  # 1e-05
            return None
        going &= ~stop
        if not going.any():
            break
    scale = np.array([1000, 100, 10, 1], np.int64)
    return value * scale[np.maximum(fraction, 0)]


def _integer(byte: Bytes, place: Ints) -> Ints | None:
    """Integers at each place; a quoted text counts as 0."""
    value = np.zeros(place.size, np.int64)
    first = byte[np.minimum(place, byte.size - 1)]
    negative = first == 45
    place = place + negative
    going = first != 34
    for column in range(20):
        char = byte[np.minimum(place + column, byte.size - 1)]
        digit = (char >= 48) & (char <= 57)
        if column == 0 and (going & ~digit).any():
            return None
        going &= digit
        if not going.any():
            break
        value = np.where(going, value * 10 + (char - 48), value)
    return np.where(negative, -value, value)


def _events(text: bytes) -> Iterator[dict[str, object]]:
    """The complete events of a stretch of text, by ``json``, in Kineto's layout or not."""
    decoded = text.decode("latin-1")  # one character a byte: positions agree, and names are decoded at the end
    place = 0
    for match in re.finditer(r'\{\s*"ph"', decoded):
        if match.start() < place:
            continue
        try:
            event, place = _DECODER.raw_decode(decoded, match.start())
        except (ValueError, RecursionError):
            continue
        if event.get("ph") == "X":
            event["name"] = str(event.get("name", "")).encode("latin-1", "replace").decode("utf-8", "replace")
            yield event


def _row(event: dict[str, object]) -> tuple[object, ...] | None:
    """A slow event's columns: pid, category, name, start, end, thread, device, stream, correlation, size."""
    category = CATEGORIES.get(str(event.get("cat", "")).lower(), Cat.OTHER)
    if category is Cat.OTHER:
        return None
    raw = event.get("args")
    args = raw if isinstance(raw, dict) else {}
    on_device = Cat.KERNEL <= category <= Cat.MEMSET
    start = _nanoseconds(event.get("ts"))
    tid = _whole(event.get("tid"), 0)
    name = json.dumps(str(event.get("name", "")), ensure_ascii=False)[1:-1].encode("utf-8", "replace")
    return (
        _whole(event.get("pid"), 0), category, name, start, start + _nanoseconds(event.get("dur")),
        0 if on_device else tid, _whole(args.get("device"), 0) if on_device else -1,
        _whole(args.get("stream"), tid) if on_device else -1, _whole(args.get("correlation"), 0),
        _whole(args.get("bytes"), 0) if category is Cat.MEMCPY else 0,
    )  # fmt: skip


def _nanoseconds(micro: object) -> int:
    if isinstance(micro, str):
        try:
            micro = float(micro)
        except ValueError:
            return 0
    if isinstance(micro, int):
        return _fitting(micro * 1000)
    if isinstance(micro, float) and math.isfinite(micro):
        whole = int(micro)  # apart: 1.7e18 ns do not fit a double
        return _fitting(whole * 1000 + round((micro - whole) * 1000))
    return 0


def _whole(value: object, default: int) -> int:
    if isinstance(value, str) and len(value) < 25 and value.isascii() and value.removeprefix("-").isdigit():
        value = int(value)
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return _fitting(int(value))
    return default


def _fitting(value: int) -> int:
    """A number as it is, 0 where a sum of two of them would not fit the columns: no trace holds such a time."""
    return value if -_MOST < value < _MOST else 0


def _read_whole(text: bytes, path: Path) -> Trace:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise TraceError(f"{path}: not a Kineto trace ({error})") from error
    events = data.get("traceEvents") if isinstance(data, dict) else data
    if not isinstance(events, list):
        raise TraceError(f"{path}: not a Kineto trace (no traceEvents)")
    columns = _Columns()
    columns.add_events(e for e in events if isinstance(e, dict) and e.get("ph") == "X")
    head = data if isinstance(data, dict) else {}
    devices = head.get("deviceProperties")
    return columns.trace(_whole(head.get("baseTimeNanoseconds"), 0), _devices(devices))


def _header(text: bytes) -> tuple[int, tuple[dict[str, object], ...]]:
    """``baseTimeNanoseconds`` and ``deviceProperties`` from what stands before the events."""
    base = re.search(rb'"baseTimeNanoseconds"\s*:\s*(\d+)', text)
    value: object = None
    if found := re.search(rb'"deviceProperties"\s*:\s*', text):
        try:
            value, _ = _DECODER.raw_decode(text.decode("latin-1"), found.end())
        except (ValueError, RecursionError):
            value = None
    return (_whole(base[1].decode(), 0) if base else 0), _devices(value)


def _devices(value: object) -> tuple[dict[str, object], ...]:
    return tuple(d for d in value if isinstance(d, dict)) if isinstance(value, list) else ()


def _text(name: bytes) -> str:
    text = name.decode("utf-8", "replace")
    if "\\" in text:
        try:
            return str(json.loads(f'"{text}"', strict=False))
        except ValueError:
            return text
    return text
