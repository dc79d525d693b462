"""How many devices an engine spreads over, and how many threads its workers start."""

from __future__ import annotations

from collections.abc import Mapping

_TENSOR = frozenset({"tensor-parallel-size", "tp-size", "tp", "num-shard"})
_PIPELINE = frozenset({"pipeline-parallel-size", "pp-size", "pp"})
_DATA = frozenset({"data-parallel-size", "dp-size", "dp"})


def degree(settings: Mapping[str, object]) -> int | None:
    """The product of the parallel degrees; None where one is not a number, or devices are spread in another way."""
    if any("context-parallel" in name or "cp-size" in name or "nnodes" in name for name in map(_plain, settings)):
        return None
    total = 1
    for group in (_TENSOR, _PIPELINE, _DATA):
        for name, value in settings.items():
            if _plain(name) in group:
                if not isinstance(value, float) or value != int(value) or value < 1:
                    return None
                total *= int(value)
                break
    return total


def _plain(name: str) -> str:
    return name.strip("-").replace("_", "-")


def idle_devices(used: int | None, devices: int | None) -> int | None:
    """How many of the devices nothing uses; None where none is, or the numbers are not known."""
    if used is None or devices is None or devices <= used:
        return None
    return devices - used


def oversubscribed(threads: int, workers: int, cores: float) -> bool:
    """Whether the workers' threads exceed the cores twice over."""
    return threads * workers > 2 * cores
