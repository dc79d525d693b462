"""A pytest plugin: of the tests that were collected only some are run, the same ones for the same seed.

``SAMPLE_TESTS`` is their number, ``SAMPLE_SEED`` the seed. Tests that are skipped in any case do not count. With
``SAMPLE_SEEN`` and ``SAMPLE_FILE`` the first lines of the functions of one source file that ran are written down.
"""

from __future__ import annotations

import os
import random
import sys
from types import FrameType
from typing import Any

_seen: set[int] = set()


def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep some of the tests, in their order."""
    for item in items:
        for mark in item.iter_markers("skipif"):
            item.skipped_anyway = mark.args and mark.args[0] is True
    able = [item for item in items if not any(item.iter_markers("skip")) and not getattr(item, "skipped_anyway", False)]
    able = [item for item in able if not any(word in item.name for word in ("flash_attn", "multi_gpu", "parallel"))]
    wanted = int(os.environ["SAMPLE_TESTS"])
    chosen = set(random.Random(int(os.environ["SAMPLE_SEED"])).sample(range(len(able)), min(wanted, len(able))))
    kept = [item for number, item in enumerate(able) if number in chosen]
    kept_ids = set(map(id, kept))
    config.hook.pytest_deselected(items=[item for item in items if id(item) not in kept_ids])
    items[:] = kept


def pytest_sessionstart(session: Any) -> None:
    """Watch which functions of the file are entered."""
    file = os.environ.get("SAMPLE_FILE")
    if not file:
        return

    def watch(frame: FrameType, event: str, value: Any) -> None:
        if event == "call" and frame.f_code.co_filename == file:
            _seen.add(frame.f_code.co_firstlineno)

    sys.setprofile(watch)


def pytest_sessionfinish(session: Any) -> None:
    """Write them down."""
    sys.setprofile(None)
    if os.environ.get("SAMPLE_SEEN"):
        with open(os.environ["SAMPLE_SEEN"], "w", encoding="utf-8") as out:
            out.write("\n".join(map(str, sorted(_seen))))
