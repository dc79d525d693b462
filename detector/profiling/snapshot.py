"""What the device's memory holds at its peak, from a snapshot of PyTorch's caching allocator.

    torch.cuda.memory._record_memory_history(); …; torch.cuda.memory._dump_snapshot("memory.pickle")

The snapshot's history is walked back from its end, so that what was there before recording began counts too. Blocks are
told apart by the functions that allocated them: names, not knowledge, and the report says so.
"""

from __future__ import annotations

import io
import pickle
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from awp_lint.detector.errors import UsageError

_MAX_BYTES = 2_000_000_000
KINDS = ("weights", "kv", "activations", "unknown", "fragmentation")
_KV = re.compile(
    r"kv_?cache|cache_utils|past_key|paged|block_manager|key_?value|(^|[._/])caches?([._/]|$)", re.IGNORECASE
)
_WEIGHTS = re.compile(
    r"load_state_dict|from_pretrained|load_model|load_weights|safetensors|_initialize_weights|reset_parameters|init_empty"
    r"|/nn/modules/module\.py:(to|_apply|cuda|half|bfloat16)$|/modeling_utils\.py|model_loader|:init_weights$",
    re.IGNORECASE,
)
_FREED = ("free_completed", "free")  # a block returns to the pool with the first that there is
_TOP = 12
_POINTS = 300


class _Plain(pickle.Unpickler):
    """Reads the plain data that a snapshot is and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:
        raise pickle.UnpicklingError(f"a snapshot holds no {module}.{name}")


@dataclass(frozen=True, slots=True)
class _Block:
    size: int
    frames: tuple[str, ...]  # innermost first, "file:function:line"
    lived: bool  # whether it was there when recording began


def load(path: str) -> dict[str, Any]:
    """The peak as data for the report. Raises :class:`UsageError` for a file that is no snapshot."""
    try:
        file = Path(path)
        if file.stat().st_size > _MAX_BYTES:
            raise UsageError(f"{path}: larger than {_MAX_BYTES // 10**9} GB")
        found = _Plain(io.BytesIO(file.read_bytes())).load()
    except OSError as error:
        raise UsageError(f"{path}: the snapshot cannot be read: {error.strerror}") from None
    except Exception as error:  # a damaged pickle raises anything
        raise UsageError(f"{path}: not a memory snapshot: {str(error)[:120]}") from None
    if not isinstance(found, dict) or not isinstance(found.get("segments"), list):
        raise UsageError(f"{path}: not a memory snapshot: it has no segments")
    try:
        return _peak(found, Path(path).name)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UsageError(f"{path}: a memory snapshot of an unknown form: {error}") from None


def _peak(found: Mapping[str, Any], source: str) -> dict[str, Any]:
    traces: Sequence[Sequence[Mapping[str, Any]]] = found.get("device_traces") or []
    sums = Counter(int(segment.get("device", 0)) for segment in found["segments"] for _ in segment["blocks"])
    device = sums.most_common(1)[0][0] if sums else 0
    segments = [segment for segment in found["segments"] if int(segment.get("device", 0)) == device]
    history = list(traces[device]) if device < len(traces) else []
    live, reserved_now = _now(segments)
    at_peak, used, reserved, curve = _walk(live, reserved_now, history)
    sizes: Counter[str] = Counter()
    places: Counter[tuple[str, str]] = Counter()
    for block in at_peak:
        kind = _kind(block)
        sizes[kind] += block.size
        places[kind, _place(block.frames)] += block.size
    sizes["fragmentation"] = max(reserved - used, 0)
    return {
        "source": source,
        "peak_bytes": used,
        "reserved_bytes": reserved,
        "fragmentation": round(sizes["fragmentation"] / reserved, 4) if reserved else 0.0,
        "kinds": {kind: sizes[kind] for kind in KINDS},
        "places": [{"kind": kind, "place": place, "bytes": size} for (kind, place), size in places.most_common(_TOP)],
        "recorded": bool(history),
        "curve": curve,
    }


def _now(segments: Iterable[Mapping[str, Any]]) -> tuple[dict[int, _Block], int]:
    """The blocks in use at the snapshot by address, and the bytes reserved."""
    live: dict[int, _Block] = {}
    reserved = 0
    for segment in segments:
        reserved += int(segment["total_size"])
        address = int(segment.get("address", 0))
        for block in segment["blocks"]:
            address = int(block.get("address", address))
            if str(block["state"]).startswith("active"):
                size = int(block.get("requested_size", block["size"])) or int(block["size"])
                live[address] = _Block(size, _frames(block), lived=True)
            address += int(block["size"])
    return live, reserved


def _walk(
    live: dict[int, _Block], reserved_now: int, history: Sequence[Mapping[str, Any]]
) -> tuple[list[_Block], int, int, dict[str, list[float]] | None]:
    """The blocks in use at the peak, their bytes and the bytes reserved then, and both over time.

    The history is undone from its end.
    """
    used = sum(block.size for block in live.values())
    best_at, best_used, best_reserved = len(history), used, reserved_now
    levels = [(used, reserved_now)]
    for position, used, reserved in _undo(dict(live), reserved_now, history):
        levels.append((used, reserved))
        if used > best_used:
            best_at, best_used, best_reserved = position, used, reserved
    if best_at < len(history):
        for position, _, _ in _undo(live, 0, history):
            if position == best_at:
                break
    made = {
        (int(event["addr"]), int(event["size"])): _frames(event)
        for event in history[:best_at]
        if event["action"] == "alloc"
    }
    blocks = []
    for address, block in live.items():
        frames = made.get((address, block.size))
        blocks.append(block if frames is None else _Block(block.size, frames or block.frames, lived=False))
    return blocks, best_used, best_reserved, _curve(levels[::-1], history)


def _curve(levels: Sequence[tuple[int, int]], history: Sequence[Mapping[str, Any]]) -> dict[str, list[float]] | None:
    """Bytes in use and reserved over time in at most :data:`_POINTS` points, each the highest of its stretch.

    ``levels[n]`` holds before event ``n``. None where the events have no times.
    """
    times = [int(event.get("time_us", 0)) for event in history]
    if len(times) < 3 or times[-1] <= times[0]:
        return None
    span = times[-1] - times[0]
    cells: dict[int, list[int]] = {}
    for time, (used, reserved) in zip(times, levels[1:], strict=True):
        cell = cells.setdefault(min(_POINTS * (time - times[0]) // span, _POINTS - 1), [0, 0])
        cell[0], cell[1] = max(cell[0], used), max(cell[1], reserved)
    found = sorted(cells.items())
    return {
        "t_s": [round((number + 0.5) * span / _POINTS / 1e6, 4) for number, _ in found],
        "used": [float(used) for _, (used, _) in found],
        "reserved": [float(reserved) for _, (_, reserved) in found],
    }


def _undo(
    live: dict[int, _Block], reserved: int, history: Sequence[Mapping[str, Any]]
) -> Iterator[tuple[int, int, int]]:
    """Undo event by event: its position, and the bytes in use and reserved before it. ``live`` is changed in place."""
    freed = next((word for word in _FREED if any(event["action"] == word for event in history)), "")
    used = sum(block.size for block in live.values())
    for position in range(len(history) - 1, -1, -1):
        event = history[position]
        action, address, size = event["action"], int(event.get("addr", 0)), int(event.get("size", 0))
        if action == "alloc":
            block = live.pop(address, None)
            used -= block.size if block is not None else 0
        elif action == freed and address not in live:
            live[address] = _Block(size, _frames(event), lived=True)
            used += size
        elif action in ("segment_alloc", "segment_map"):
            reserved -= size
        elif action in ("segment_free", "segment_unmap"):
            reserved += size
        yield position, used, reserved


def _frames(event: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        f"{frame.get('filename', '')}:{frame.get('name', '')}:{frame.get('line', 0)}"
        for frame in event.get("frames") or ()
    )


def _kind(block: _Block) -> str:
    """By the functions that allocated it; what was there before recording began is taken for weights."""
    names = [frame.rsplit(":", 1)[0] for frame in block.frames]
    if any(_KV.search(name) for name in names):
        return "kv"
    if any(_WEIGHTS.search(name) for name in names):
        return "weights"
    if block.lived:
        return "weights" if not names else "unknown"
    return "activations"


def _place(frames: Sequence[str]) -> str:
    """The innermost frame outside PyTorch, else the innermost."""
    own = [frame for frame in frames if "/torch/" not in frame and frame.split(":", 1)[0].endswith(".py")]
    chosen = own[0] if own else frames[0] if frames else "before recording began"
    file, _, rest = chosen.partition(":")
    return f"{'/'.join(file.split('/')[-2:])}:{rest}" if rest else chosen
