"""A pytest plugin: of each file's tests only some are run, the same ones for the same seed.

``SAMPLE_TESTS`` is their number, ``SAMPLE_SEED`` the seed. Tests that are skipped in any case do not count, nor do
those whose names say that they need other devices, a compiler or long runs. ``SAMPLE_WATCHED`` is a JSON file with
lines to watch (by source file, then by the first line of their function); ``SAMPLE_SEEN`` takes which of them ran, and
from where modules were loaded.
"""

from __future__ import annotations

import json
import os
import random
import re
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

_OTHER = re.compile(
    "flash_attn|flash_attention|multi_gpu|parallel|compile|export|torchscript|offload|memory|training|gradient|dtype"
    "|save|load|push_to_hub|bnb|quant|deepspeed|safetensors|pickle"
)
_watched: dict[str, dict[int, set[int]]] = {}
_ran: dict[str, set[int]] = {}


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep some of each file's tests, in their order."""
    files: dict[str, list[Any]] = {}
    for item in items:
        skipped = any(item.iter_markers("skip")) or any(
            m.args and m.args[0] is True for m in item.iter_markers("skipif")
        )
        if not skipped and not _OTHER.search(item.name):
            files.setdefault(str(item.path), []).append(item)
    wanted = int(os.environ["SAMPLE_TESTS"])
    kept: set[int] = set()
    for able in files.values():
        draw = random.Random(int(os.environ["SAMPLE_SEED"]))
        kept |= set(map(id, draw.sample(able, min(wanted, len(able)))))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept])
    items[:] = [item for item in items if id(item) in kept]


def pytest_sessionstart(session: Any) -> None:
    """Read what to watch."""
    with open(os.environ["SAMPLE_WATCHED"], encoding="utf-8") as file:
        for path, functions in json.load(file).items():
            _watched[path] = {int(first): set(lines) for first, lines in functions.items()}


def pytest_runtest_setup(item: Any) -> None:
    """Watch while tests run, and not while they are imported."""
    if _watched:
        sys.settrace(_calls)
        threading.settrace(_calls)


def _calls(frame: FrameType, event: str, value: Any) -> Callable[..., Any] | None:
    """Only frames of watched functions are followed line by line."""
    code = frame.f_code
    lines = _watched.get(code.co_filename, {}).get(code.co_firstlineno)
    if lines is None:
        return None
    seen = _ran.setdefault(code.co_filename, set())

    def steps(frame: FrameType, event: str, value: Any) -> Callable[..., Any]:
        if event == "line" and frame.f_lineno in lines:
            seen.add(frame.f_lineno)
        return steps

    return steps


def pytest_sessionfinish(session: Any) -> None:
    """Write down what ran."""
    sys.settrace(None)
    found = {
        "ran": {file: sorted(lines) for file, lines in _ran.items()},
        "loaded": sorted({str(getattr(module, "__file__", "")) for module in list(sys.modules.values())}),
    }
    with open(os.environ["SAMPLE_SEEN"], "w", encoding="utf-8") as out:
        json.dump(found, out)
