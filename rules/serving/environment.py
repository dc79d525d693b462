"""Environment variables that cost speed wherever they are set: Python, shell, Dockerfile, Compose, Kubernetes."""

from __future__ import annotations

#: Variables that are for debugging, to the values that switch them on and what they do.
DEBUG: dict[str, tuple[frozenset[str], str]] = {
    "CUDA_LAUNCH_BLOCKING": (frozenset({"1"}), "makes the host wait for every kernel"),
    "HIP_LAUNCH_BLOCKING": (frozenset({"1"}), "makes the host wait for every kernel"),
    "AMD_SERIALIZE_KERNEL": (frozenset({"1", "2", "3"}), "makes the host wait for every kernel"),
    "NCCL_BLOCKING_WAIT": (frozenset({"1"}), "makes the host wait for every collective"),
    "TORCH_NCCL_BLOCKING_WAIT": (frozenset({"1"}), "makes the host wait for every collective"),
    "TORCH_DISTRIBUTED_DEBUG": (frozenset({"DETAIL"}), "checks every collective with collectives of its own"),
    "PYTORCH_NO_CUDA_MEMORY_CACHING": (frozenset({"1"}), "allocates by the driver each time"),
    "PYTORCH_NO_HIP_MEMORY_CACHING": (frozenset({"1"}), "allocates by the driver each time"),
    "TORCHDYNAMO_DISABLE": (frozenset({"1"}), "switches `torch.compile` off"),
    "TORCH_COMPILE_DISABLE": (frozenset({"1"}), "switches `torch.compile` off"),
    "PYTORCH_JIT": (frozenset({"0"}), "switches TorchScript off"),
    "VLLM_TRACE_FUNCTION": (frozenset({"1"}), "logs every Python call"),
}

#: Those that cost only some programs, if any.
MINOR = frozenset({"PYTORCH_JIT"})


def debug_switch(name: str, value: str) -> str | None:
    """What a variable of this value costs; None for harmless ones."""
    known = DEBUG.get(name.strip())
    if known is None:
        return None
    return known[1] if value.strip().strip("\"'").upper() in known[0] else None
