"""What Dynamo compiled in this process, as it keeps account of it: for the record of a run."""

from __future__ import annotations

import sys
from typing import Any

_MOST = 64  # torch keeps no more itself


def compilations() -> list[list[Any]]:
    """``[path, line, function, begun_ns, took_ms, again, reason]`` of each, the latest ones; ``again``: for a function
    that had been compiled before. Empty where nothing was compiled, or by a torch that keeps no account."""
    utils: Any = sys.modules.get("torch._dynamo.utils")
    account = getattr(utils, "get_compilation_metrics", None)
    found = []
    for one in (account() if account is not None else [])[-_MOST:]:
        number = str(getattr(one, "compile_id", None) or "").rpartition("/")[2].partition("_")[0]
        path, line, began = (getattr(one, name, None) for name in ("co_filename", "co_firstlineno", "start_time"))
        took = getattr(one, "entire_frame_compile_time_s", None)
        if not path or not line or began is None or took is None:
            continue
        reason = str(getattr(one, "recompile_reason", None) or "")
        again = number.isdigit() and int(number) > 0
        found.append([path, int(line), str(one.co_name), int(began * 1e9), round(took * 1e3, 3), again, reason[:500]])
    return found
