"""Slices of torch.profiler, started and stopped by the thread that they record (see ``errand``).

Runtime calls and device work are recorded for all threads, operations for this one only: none may be under way in it.

The binding underneath ``torch.profiler`` is used directly, because the public class turns every event into a Python
object when it stops, in the user's process. What it writes is the same Kineto JSON.
"""

from __future__ import annotations

import os
import sys
from time import perf_counter, perf_counter_ns, sleep, time_ns
from typing import Any, Callable

from awp_lint.detector.profiling.agent.files import Record
from awp_lint.detector.profiling.agent.life import Life, here

_LAZY_INIT_WORKS = (12, 6)  # older CUDA can crash when CUPTI comes back in a process that has captured graphs


class Unavailable(Exception):
    """The profiler cannot be used in this process; the text says why."""


def torch_module() -> Any | None:
    """torch, once the program has imported it completely."""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    if torch is None or getattr(spec, "_initializing", False) or not hasattr(torch, "autograd"):
        return None
    return torch


def uses_cuda(torch: Any) -> bool:
    """Whether the program has a CUDA context. Never makes one."""
    try:
        return bool(torch.cuda.is_initialized())
    except Exception:
        return False


def reduced_fp32(torch: Any) -> dict[str, Any]:
    """Whether float32 arithmetic on CUDA may run as TF32, by kind of operation; None where torch does not tell."""
    found: dict[str, Any] = {}
    for kind, legacy in (("matmul", "_get_float32_matmul_precision"), ("conv", "_get_cudnn_allow_tf32")):
        found[kind] = None
        try:  # asking sets nothing, and warns of nothing
            new = getattr(torch._C, "_get_fp32_precision_getter", None)
            told = new("cuda", kind) if new is not None else getattr(torch._C, legacy)()
            found[kind] = told in (True, "tf32", "high", "medium")
        except Exception:
            continue
    return found


def _cuda_version(torch: Any) -> tuple[int, ...]:
    """The CUDA that torch was built for; () for another or none."""
    text = str(getattr(torch.version, "cuda", None) or "")
    parts = text.split(".")[:2]
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else ()


def _set(name: str, value: str) -> None:
    """Set a variable for the C libraries of this process, unless the user did. ``os.environ`` stays the program's."""
    if name not in os.environ:
        os.putenv(name, value)


def in_use() -> bool:
    """Whether the program has a profiler of its own running, in whatever thread."""
    autograd: Any = sys.modules["torch"].autograd
    return bool(getattr(autograd.profiler, "_is_profiler_enabled", False)) or bool(autograd._profiler_enabled())


def _tasks() -> set[str]:
    """The threads of the process, as the kernel numbers them; empty where it does not tell."""
    try:
        return set(os.listdir("/proc/self/task"))
    except OSError:
        return set()


def _alive(task: str) -> bool:
    return os.path.exists("/proc/self/task/" + task)


def _ask_device() -> None:
    """One call of the CUDA runtime, on a device that the program uses: it makes no context of its own."""
    torch = torch_module()
    if torch is None or not uses_cuda(torch):
        return
    try:
        for device in range(torch.cuda.device_count()):
            if torch.cuda.memory_reserved(device):
                torch.cuda.current_stream(device).query()
                return
        torch.cuda.current_device()
    except Exception:
        return


class Tracer:
    """Starts, stops and exports. Start and stop belong to one thread, the export to any."""

    def __init__(self, record: Record) -> None:
        self.record = record
        self.running = False
        self.warm = False
        self.thread: Life | None = None  # that runs the slice
        self.began_ns = 0  # when the slice that was started last began
        self.ended_ns = 0  # when the slice that was stopped last ended
        self._result: Any = None
        self._hooked: list[Any] = []
        self._helpers: set[str] = set()  # threads that take CUPTI down, by their task numbers

    def start(self, shapes: bool = False) -> None:
        """Begin a slice; with ``shapes`` each operation's inputs are described too. Raises :class:`Unavailable`."""
        torch = torch_module()
        if torch is None:
            raise Unavailable("torch is not imported")
        _set("KINETO_LOG_LEVEL", "6")
        if uses_cuda(torch) and _cuda_version(torch) >= _LAZY_INIT_WORKS:
            # Else CUPTI stays attached after the first slice and every launch costs more from then on: 18.2 ms for a
            # step of 1,200 kernels that took 13.4 ms before (H200, torch 2.11, CUDA 13); with it 14.0 ms.
            _set("TEARDOWN_CUPTI", "1")
        try:
            from torch._C._profiler import ProfilerActivity, ProfilerConfig, ProfilerState, _ExperimentalConfig

            prepare, enable = torch.autograd._prepare_profiler, torch.autograd._enable_profiler
        except (ImportError, AttributeError) as fault:
            raise Unavailable(f"this torch has no profiler that can be used: {fault}") from fault
        if in_use():
            raise Unavailable("the program uses torch.profiler itself")
        try:
            experimental = _ExperimentalConfig(enable_cuda_sync_events=uses_cuda(torch))
        except TypeError:
            experimental = _ExperimentalConfig()
        activities = {ProfilerActivity.CPU}
        if uses_cuda(torch):
            activities.add(ProfilerActivity.CUDA)
        config = ProfilerConfig(ProfilerState.KINETO, shapes, False, False, False, False, experimental)
        began = perf_counter_ns()
        with _Quiet(self.record.path("stderr.tmp"), active=not self.warm):
            prepare(config, activities)
            enable(config, activities)
        self.record.stall("profiler start" if self.warm else "first profiler start", perf_counter_ns() - began)
        self.began_ns = time_ns()
        self.running = True
        self.warm = True
        self.thread = here()
        self.thread.at_end = self._thread_ends

    def stop(self) -> None:
        """End the slice, in the thread that began it."""
        if not self.running:
            return
        disable: Any = sys.modules["torch"].autograd._disable_profiler
        began = perf_counter_ns()
        self.ended_ns = time_ns()
        if self.thread is not None:
            self.thread.at_end = None
        before = _tasks()
        try:
            self._result = disable()
        finally:
            self.running = False
            self._helpers = {task for task in self._helpers if _alive(task)} | (_tasks() - before)
        self.record.stall("profiler stop", perf_counter_ns() - began)

    def settle(self, seconds: float = 1.0) -> None:
        """At the program's end: let CUPTI go down.

        Kineto takes it down in a thread that waits until some CUDA call passes by. Where the program makes none any
        more, that thread still waits when the library's destructors run, and they wait for it: the process would
        never end. So calls are made for it, of the kind that asks and changes nothing.
        """
        end = perf_counter() + seconds
        while any(_alive(task) for task in self._helpers) and perf_counter() < end:
            _ask_device()
            sleep(0.001)

    def _thread_ends(self) -> None:
        """A slice cannot outlive its thread: what torch keeps of it goes with the thread."""
        if self.running:
            self.stop()

    def export(self, path: str) -> int:
        """Write the slice that was stopped last; the size of the file in bytes, 0 without a slice."""
        result, self._result = self._result, None
        if result is None:
            return 0
        began = perf_counter_ns()
        result.save(path)
        self.record.stall("trace export", perf_counter_ns() - began)
        return os.path.getsize(path)

    def abandon(self) -> None:
        """The thread of the slice is gone or stuck, and nobody else may stop it."""
        if self.thread is not None:
            self.thread.at_end = None
        self.running = False
        self._result = None

    def yield_to(self, give_way: Callable[[], None]) -> None:
        """While a slice runs, a profiler that the program starts itself first makes us end ours."""
        module: Any = sys.modules["torch"].autograd.profiler
        for name in ("_prepare_profiler", "_enable_profiler"):
            original = getattr(module, name, None)
            if original is None:
                continue

            def wrapped(*args: Any, _original: Any = original, **kwargs: Any) -> Any:
                try:
                    give_way()
                except Exception as fault:
                    self.record.error("our slice could not make way for the program's profiler", fault)
                return _original(*args, **kwargs)

            setattr(module, name, wrapped)
            self._hooked.append((module, name, wrapped, original))

    def unhook(self) -> None:
        """Put the program's own entry points back."""
        while self._hooked:
            module, name, wrapped, original = self._hooked.pop()
            if getattr(module, name, None) is wrapped:
                setattr(module, name, original)


class _Quiet:
    """Keeps one line of Kineto's off standard error, and nothing else: what others write meanwhile is passed on."""

    def __init__(self, path: str, active: bool) -> None:
        self.path = path
        self.active = active

    def __enter__(self) -> None:
        self.saved = -1
        if not self.active:
            return
        try:
            self.buffer = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND, 0o600)
            self.saved = os.dup(2)
            os.dup2(self.buffer, 2)
        except OSError:
            self.saved = -1

    def __exit__(self, *exception: object) -> None:
        if self.saved < 0:
            return
        os.dup2(self.saved, 2)
        os.close(self.buffer)
        with open(self.path, "rb") as file:
            rest = b"".join(line for line in file if b"External init callback" not in line)
        os.remove(self.path)
        while rest:
            rest = rest[os.write(self.saved, rest) :]
        os.close(self.saved)
