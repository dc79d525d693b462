"""What torch's caching allocator keeps account of anyway. Nothing is switched on or reset: peaks are the program's."""

from __future__ import annotations

import sys
from typing import Any

from awp_lint.detector.profiling.agent.tracer import torch_module, uses_cuda

_NAMES = {
    "allocated": "allocated_bytes.all.current",
    "allocated_peak": "allocated_bytes.all.peak",
    "reserved_peak": "reserved_bytes.all.peak",
    "allocations": "allocation.all.allocated",
    "segments": "segment.all.allocated",
    "retries": "num_alloc_retries",
    "ooms": "num_ooms",
}


def account() -> dict[str, int] | None:
    """Bytes and counts since the program began, summed over devices; None where torch keeps no such account."""
    torch = torch_module()
    if torch is None or not uses_cuda(torch):
        return None
    found = dict.fromkeys(_NAMES, 0)
    for device in range(torch.cuda.device_count()):
        stats = torch.cuda.memory_stats(device)
        for name, key in _NAMES.items():
            found[name] += int(stats.get(key, 0))
    return found


def weights() -> int | None:
    """Bytes of all modules' parameters and buffers on a CUDA device, shared ones once; None without torch."""
    torch = torch_module()
    module: Any = getattr(getattr(torch, "nn", None), "Module", None)
    if module is None:
        return None
    import gc

    seen: dict[int, int] = {}
    for one in gc.get_objects():
        if issubclass(type(one), module):
            for held in (one.__dict__.get("_parameters"), one.__dict__.get("_buffers")):
                for tensor in list((held or {}).values()):
                    if tensor is not None and tensor.is_cuda:
                        seen[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
    return sum(seen.values())


def missing() -> str:
    """Why there is no account."""
    torch = sys.modules.get("torch")
    if torch is None:
        return "the program never imported torch"
    return "the program uses no CUDA device, and torch keeps no account of memory on a CPU"
