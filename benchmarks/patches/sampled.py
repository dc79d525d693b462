"""A pytest plugin: of the tests that were collected only some are run, the same ones for the same seed.

``SAMPLE_TESTS`` is their number, ``SAMPLE_SEED`` the seed. Tests that are skipped in any case do not count, nor do
those whose names say that they need other devices, a compiler or long runs. With ``SAMPLE_SEEN`` and
``SAMPLE_WATCHED`` (a JSON object: by file, the lines to watch by the first line of their function) it is written down
as JSON which of those functions were entered, which of their lines ran, and from where files were loaded.
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
_entered: dict[str, set[int]] = {}
_ran: dict[str, set[int]] = {}


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep some of the tests, in their order."""
    for item in items:
        for mark in item.iter_markers("skipif"):
            item.skipped_anyway = mark.args and mark.args[0] is True
    able = [item for item in items if not any(item.iter_markers("skip")) and not getattr(item, "skipped_anyway", False)]
    able = [item for item in able if not _OTHER.search(item.name)]
    wanted = int(os.environ["SAMPLE_TESTS"])
    chosen = set(random.Random(int(os.environ["SAMPLE_SEED"])).sample(range(len(able)), min(wanted, len(able))))
    kept = [item for number, item in enumerate(able) if number in chosen]
    kept_ids = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept_ids])
    items[:] = kept


def pytest_sessionstart(session: Any) -> None:
    """Watch the lines. Only frames of watched functions are followed line by line."""
    if not os.environ.get("SAMPLE_WATCHED"):
        return
    watched = {
        file: {int(first): set(lines) for first, lines in functions.items()}
        for file, functions in json.loads(os.environ["SAMPLE_WATCHED"]).items()
    }

    def calls(frame: FrameType, event: str, value: Any) -> Callable[..., Any] | None:
        code = frame.f_code
        lines = watched.get(code.co_filename, {}).get(code.co_firstlineno)
        if lines is None:
            return None
        _entered.setdefault(code.co_filename, set()).add(code.co_firstlineno)
        seen = _ran.setdefault(code.co_filename, set())

        def steps(frame: FrameType, event: str, value: Any) -> Callable[..., Any]:
            if event == "line" and frame.f_lineno in lines:
                seen.add(frame.f_lineno)
            return steps

        return steps

    sys.settrace(calls)
    threading.settrace(calls)


def pytest_sessionfinish(session: Any) -> None:
    """Write down what ran."""
    sys.settrace(None)
    if os.environ.get("SAMPLE_SEEN"):
        found = {
            "entered": {file: sorted(lines) for file, lines in _entered.items()},
            "ran": {file: sorted(lines) for file, lines in _ran.items()},
            "loaded": sorted({str(getattr(m, "__file__", "")) for m in list(sys.modules.values())}),
        }
        with open(os.environ["SAMPLE_SEEN"], "w", encoding="utf-8") as out:
            json.dump(found, out)
