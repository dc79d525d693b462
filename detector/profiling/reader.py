"""From the files that the agents left to a :class:`~awp_lint.detector.profiling.session.Session`."""

from __future__ import annotations

import bisect
import contextlib
import json
import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from awp_lint.detector.profiling.agent.ring import BREAK
from awp_lint.detector.profiling.agent.selfcost import Cost
from awp_lint.detector.profiling.session import (
    Compilation,
    MarkRecords,
    PlannedMark,
    ProcessSession,
    Session,
    Wait,
    Window,
    WindowKind,
)

_RECORD = struct.Struct("=QII")

NO_TORCH = "the program never imported torch: no accelerator work could be seen"

Event = tuple[int, int, int]  # time_ns, thread, code


def read_session(
    folder: Path,
    command: tuple[str, ...],
    marks: tuple[PlannedMark, ...],
    exit_code: int | None,
    started_ns: int,
    ended_ns: int,
    late: tuple[PlannedMark, ...] = (),
) -> Session:
    """Read a session's folder. Damaged or missing parts cost what they held and leave a note.

    ``late`` marks came while the program ran: not to every process.
    """
    processes = []
    notes: list[str] = []
    for place in process_folders(folder):
        try:
            processes.append(read_process(place, marks, ended_ns, late))
        except (OSError, ValueError, KeyError, TypeError) as fault:
            notes.append(f"the record of one process could not be read ({place.name}: {fault})")
    places = process_folders(folder)
    if not places:
        notes.append(_no_agent(command))
    # A process that was killed cannot tell.
    elif all((place / "ended").exists() for place in places) and not any(p.torch for p in processes):
        notes.append(NO_TORCH)
    for fault_file in sorted(folder.glob("injection-*.err")):
        lines = fault_file.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [""]
        notes.append(f"the agent could not start in a process: {lines[-1]}")
    return Session(
        directory=str(folder),
        command=command,
        exit_code=exit_code,
        started_ns=started_ns,
        ended_ns=ended_ns,
        processes=tuple(processes),
        notes=tuple(notes),
    )


def process_folders(folder: Path) -> list[Path]:
    """One folder per process, in the order of their start."""
    found = [place for place in folder.glob("p*.*") if (place / "born").exists()]
    return sorted(found, key=lambda place: int(place.name.split(".")[1]))


def still_open(folder: Path) -> bool:
    """Whether a living process still has a window open or waits for one."""
    for place in process_folders(folder):
        with contextlib.suppress(OSError, ValueError):
            state = json.loads((place / "process.json").read_text(encoding="utf-8"))
            if state.get("phase") in ("warm-up", "windows") and _alive(int(state["pid"])):
                return True
    return False


def _alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _no_agent(command: tuple[str, ...]) -> str:
    flags = {flag for flag in command[1:4] if flag.startswith("-") and not flag.startswith("--")}
    blocking = sorted(flag for flag in flags if set(flag[1:]) & set("EIS") and flag[1:].isalpha())
    if blocking:
        return f"nothing was profiled: Python's {' '.join(blocking)} keeps the agent out"
    return "nothing was profiled: the command started no Python, or one that ignores PYTHONPATH"


def read_process(
    place: Path, marks: tuple[PlannedMark, ...], ended_ns: int, late: tuple[PlannedMark, ...] = ()
) -> ProcessSession:
    """One process's folder."""
    born = [os.fsdecode(part) for part in (place / "born").read_bytes().split(b"\0")]
    state: dict[str, Any] = {}
    with contextlib.suppress(FileNotFoundError):
        state = json.loads((place / "process.json").read_text(encoding="utf-8"))
    since = (int(state["late"]["first"]), int(state["late"]["since_ns"])) if state.get("late") else None
    marks = (*marks, *late) if since is not None else marks
    ticks, _ = read_ring(place / "ticks.ring")
    events, dropped = read_ring(place / "marks.ring")
    top = max((planned.index for planned in marks), default=-1) << 1 | 1
    events = [event for event in events if event[2] <= top or event[2] == BREAK]  # the agent tries itself out, too
    steps, step_loop = _of_unit(ticks, marks, "step")
    requests, request_loop = _of_unit(ticks, marks, "request")
    paced = steps or requests  # steps where any was seen
    last = max([int(state.get("saved_ns", 0)), *(time for time, _, _ in events[-1:]), *paced[-1:]])
    windows = tuple(_window(raw, paced, requests, place, last or ended_ns) for raw in state.get("windows", ()))
    own = (state.get("marks_cost") or {}).get("own_ns") or {}
    thinned = _thinned(state.get("thinned") or {})
    return ProcessSession(
        pid=int(born[0]),
        parent_pid=int(born[1]),
        argv=tuple(state.get("argv") or born[3:]),
        python=born[2],
        torch=state.get("torch"),
        cuda=bool(state.get("cuda", False)),
        device_uuids=tuple(state.get("device_uuids", ())),
        rank=state.get("rank"),
        backend=state.get("backend", "none"),
        marks=marks,
        pacing={kind: mark for kind, mark in (("step", step_loop), ("request", request_loop)) if mark is not None},
        mark_ns=Cost(*(float(own.get(name, 0)) for name in Cost._fields)),
        reached=_reached(place / "reached.bin"),
        armed=frozenset(state.get("armed", ())),
        other_copies={int(mark): path for mark, path in state.get("other_copies", {}).items()},
        windows=windows,
        records=pair(events, dropped, thinned),
        thinned=thinned,
        stalls_ms=tuple((str(what), float(ms)) for what, ms in state.get("stalls", ())),
        errors=tuple(state.get("errors", ())),
        census=read_census(place),
        memory=state.get("memory"),
        compilations=tuple(Compilation(*row) for row in state.get("compilations", ())),
        late=since,
        led={int(mark): (str(p), int(line), str(name)) for mark, (p, line, name) in state.get("led", {}).items()},
        clean_exit=bool(state.get("clean_exit", False)),
    )


def read_census(place: Path) -> tuple[Wait, ...] | str | None:
    """The waits that torch told of, why it told none, or None where it was not asked."""
    try:
        found = json.loads((place / "census.json").read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return str(found["missing"]) if "missing" in found else tuple(Wait(*row) for row in found["waits"])


def read_ring(path: Path) -> tuple[list[Event], int]:
    """The records of a ring in order of writing, and how many were overwritten at least."""
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return [], 0
    size = _RECORD.size
    used = -(-len(raw.rstrip(b"\0")) // size)
    slots = list(_RECORD.iter_unpack(raw[: min(used * size, len(raw) - len(raw) % size)]))
    if used < len(raw) // size:
        return [slot for slot in slots if slot[0]], 0
    # Full: the oldest record follows the newest, at the greatest step back (threads lie a little out of order).
    steps = [slots[i][0] - slots[i + 1][0] for i in range(used - 1)]
    cut = max(range(len(steps)), key=steps.__getitem__, default=-1) + 1 if steps and max(steps) > 0 else 0
    return [*slots[cut:], *slots[:cut]], 1 if cut else 0


def _thinned(raw: dict[str, Any]) -> dict[int, tuple[tuple[int, int], ...]]:
    rows: list[tuple[int, int]] = []
    for start, end in raw.get("stretches", ()):
        if rows and rows[-1][1] == start:  # a unit that follows the last one: what runs over a tick is recorded too
            start = rows.pop()[0]
        rows.append((int(start), int(end)))
    return {int(mark): tuple(rows) for mark in raw.get("marks", ())}


def pair(
    events: list[Event], dropped: int, thinned: Mapping[int, tuple[tuple[int, int], ...]] | None = None
) -> MarkRecords:
    """Marks that both opened and closed, in time order within a thread.

    A close without its open (the mark was entered before recording began, or the place is also reached otherwise) and
    an open that never closes are left out: what they cover is not known.
    """
    keep: list[tuple[int, int, int, bool, int]] = []
    stacks: dict[int, list[tuple[int, int, int]]] = {}
    for order, (now, thread, code) in enumerate(events):
        if code == BREAK:
            stacks.clear()
            continue
        mark, opens = code >> 1, code & 1
        stack = stacks.setdefault(thread, [])
        if opens:
            stack.append((now, mark, order))
            continue
        at = next((i for i in range(len(stack) - 1, -1, -1) if stack[i][1] == mark), None)
        if at is None:
            continue
        began, _, opened = stack[at]
        del stack[at:]
        if thinned and mark in thinned and not _together(began, now, thinned[mark]):
            continue
        keep.append((opened, began, thread, True, mark))
        keep.append((order, now, thread, False, mark))
    keep.sort()
    return MarkRecords(
        time_ns=[entry[1] for entry in keep],
        thread=[entry[2] for entry in keep],
        mark=[entry[4] for entry in keep],
        opens=[entry[3] for entry in keep],
        dropped=dropped,
    )


def _together(opened: int, closed: int, stretches: tuple[tuple[int, int], ...]) -> bool:
    """Whether both times lie in the same stretch of recording."""
    at = bisect.bisect_right(stretches, (opened, sys.maxsize)) - 1
    return at >= 0 and closed <= stretches[at][1]


def _reached(path: Path) -> dict[int, int]:
    try:
        raw = path.read_bytes()
    except FileNotFoundError:
        return {}
    return {mark: when for mark, (when,) in enumerate(struct.iter_unpack("=Q", raw[: len(raw) // 8 * 8])) if when}


def _of_unit(ticks: list[Event], marks: tuple[PlannedMark, ...], unit: str) -> tuple[list[int], int | None]:
    """Starts of the units of one kind, and the mark that gave them: of several loops the one that ticked most.

    Two step loops of one request, a draft and its target for one, would otherwise make half steps of each other's.
    """
    wanted = {planned.index for planned in marks if planned.unit == unit}
    times: dict[int, list[int]] = {}
    for now, _, code in ticks:
        if code >> 1 in wanted:
            times.setdefault(code >> 1, []).append(now)
    if not times:
        return [], None
    mark, starts = max(sorted(times.items()), key=lambda entry: len(entry[1]))
    return sorted(starts), mark


def _window(raw: dict[str, Any], paced: list[int], requests: list[int], place: Path, last_ns: int) -> Window:
    start = int(raw["start_ns"])
    end = int(raw["end_ns"]) if raw.get("end_ns") else max(start, last_ns)
    trace = raw.get("trace")
    path = place / trace if trace else None
    note = raw.get("note", "")
    if not raw.get("end_ns"):
        note = "the process ended inside it"
    return Window(
        kind=WindowKind(raw["kind"]),
        start_ns=start,
        end_ns=end,
        ticks=tuple(now for now in paced if start <= now <= end),
        requests=tuple(now for now in requests if start <= now <= end),
        trace=str(path) if path is not None and path.exists() else None,
        threads={int(native): int(ident) for native, ident in raw.get("threads", {}).items()},
        step=raw.get("step"),
        fp32=raw.get("fp32"),
        prefill=bool(raw.get("prefill")),
        memory=(raw["memory"][0], raw["memory"][1]) if all(raw.get("memory") or [None]) else None,
        complete=bool(raw.get("complete")) and bool(raw.get("end_ns")),
        note=note,
    )
