"""What this process is, for its record."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from awp_lint.detector.profiling.agent.compilations import compilations
from awp_lint.detector.profiling.agent.state import State
from awp_lint.detector.profiling.agent.tracer import torch_module, uses_cuda


def facts(state: State, backend: Any) -> dict[str, Any]:
    """What ``process.json`` says of the process beside windows and faults."""
    torch = torch_module()
    cuda = torch is not None and uses_cuda(torch)
    return {
        "pid": state.record.pid,
        "parent_pid": os.getppid(),
        "argv": list(getattr(sys, "argv", [])),
        "python": "%d.%d.%d" % sys.version_info[:3],
        "torch": str(torch.__version__) if torch is not None else None,
        "cuda": cuda,
        "device_uuids": _uuids(torch) if cuda else [],
        "rank": _rank(),
        "backend": backend.name,
        "armed": sorted(state.armed),
        "other_copies": {str(mark): path for mark, path in state.other_copies.items()},
        "differs": sorted(state.differs),
        "led": {str(mark): place for mark, place in list(state.led.items())},
        "thinned": state.thin and state.thin.facts(),
        "compilations": compilations() if torch is not None else [],
    }


def _uuids(torch: Any) -> list[str]:
    found = []
    for number in range(torch.cuda.device_count()):
        uuid = getattr(torch.cuda.get_device_properties(number), "uuid", None)
        if uuid is not None:
            found.append(f"GPU-{uuid}")
    return found


def _rank() -> int | None:
    value = os.environ.get("RANK", "")
    return int(value) if value.isdigit() else None


def others() -> bool:
    """Whether the process has threads beside the main one and ours."""
    try:
        return len(os.listdir("/proc/self/task")) > 2
    except OSError:
        return False


def threads(wrote: Mapping[int, int]) -> dict[str, int]:
    """The identities of threads, as Python knows them, by their native ids: those that run and those in ``wrote``.

    A trace numbers a thread which it records no operations of by its identity (see the analysis). A server with a
    thread a request has such threads, that are gone when somebody looks.
    """
    threading = sys.modules.get("threading")
    found = {str(native): ident for native, ident in list(wrote.items())}
    for ident, thread in list(getattr(threading, "_active", {}).items()):
        native = getattr(thread, "native_id", None)
        if native is not None:
            found[str(native)] = ident
    return found
