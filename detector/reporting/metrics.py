"""Every number that a report shows: what it is, how it is read, what is healthy. One table for hovers and for help.

Nothing is imported here, so that ``--explain-metric`` needs no scan and no NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Metric:
    """One number. ``healthy`` is empty where no threshold makes sense; ``limit`` is its figure, in the metric's own
    scale (shares as 0…1, percentages as 0…100), ``above`` whether a healthy value lies above it."""

    name: str
    title: str
    unit: str
    definition: str
    source: str
    healthy: str = ""
    otherwise: str = ""
    limit: float | None = None
    above: bool = False

    def is_healthy(self, value: float) -> bool | None:
        """Whether a value is healthy; None where no threshold is known."""
        if self.limit is None:
            return None
        return value > self.limit if self.above else value < self.limit


_MARKS = "timed in windows with marks on the flagged statements and no profiler"
_TRACE = "counted in trace slices, whole units only"
_SHAPES = "counted by the shapes of operators in one slice apart, which no time is read from"
_NVML = "read from the device ten times a second, mean over the windows without profiler"
_GPM = "hardware counters (GPM, Hopper and later), ten times a second"
_NCU = "imported from Nsight Compute with --ncu"
_BASE = "timed in windows in which nothing is switched on"

_TABLE: tuple[Metric, ...] = (
    # the unit and the device's time in it
    Metric("unit_ms", "Time of a unit", "ms",
           "Mean duration of the unit that everything is counted in: a step, a request, or the whole run.", _BASE),
    Metric("gap_ratio", "Gap ratio", "share",
           "1 − (time in which any stream of the device has work ÷ unprofiled time of the unit), only while work is in "
           "flight.",
           "busy time from trace slices, the unit's time from windows without profiler",
           "below 5 %", "the host holds the device up: waits, launches, data; see the idle breakdown", 0.05),
    Metric("gpu_busy_ms", "Device busy", "ms",
           "Time in which at least one stream has work, a unit. It says nothing about how full the device is.", _TRACE),
    Metric("idle_total_ms", "Device idle", "ms",
           "Unprofiled time of a unit less the device's busy time.", "from the two above"),
    Metric("memcpy_share", "Copy share", "share",
           "Time of copies between host and device ÷ unprofiled time of the unit. A copy under other work costs less "
           "than its share: see the exposed time.",
           _TRACE, "below 3 %", "pin, overlap, or keep the data on the device", 0.03),
    Metric("kernels", "Kernels", "a unit", "Kernels that the device runs, a unit; nodes of replayed graphs included.",
           _TRACE),
    Metric("launches", "Launches", "a unit",
           "Calls by which the host starts device work, a unit: kernels, copies, fills, and graphs (one each).",
           _TRACE),
    Metric("syncs", "Waits", "a unit", "Calls in which the host blocks until the device has got somewhere, a unit.",
           _TRACE),
    Metric("unit_p50_ms", "Median", "ms", "Every other unit is faster.", _BASE),
    Metric("unit_p95_ms", "95th percentile", "ms",
           "Nineteen of twenty units are faster. Not said of fewer than 20 units.", _BASE),
    Metric("unit_p99_ms", "99th percentile", "ms",
           "Of a hundred units one is slower. Not said of fewer than 100 units.", _BASE),
    Metric("ttft_ms", "Time to first token", "ms",
           "Median time from a request's begin to its first token. Only where steps and requests can be told apart.",
           _BASE),
    Metric("prefill_share", "Prefill share", "share",
           "Time to the first token ÷ (that and the decode behind it), mean over requests: which of the two to mend "
           "first.", _BASE),
    Metric("tpot_ms", "Time per output token", "ms", "Median time of a token after the first.", _BASE),
    Metric("joint_saving", "Joint saving", "ms",
           "What a unit gains when all confirmed findings are mended, by one replay of the recorded slices with all of "
           "them edited. Savings of single findings do not add up to it.",
           "replay of the trace, held against the unprofiled windows"),
    # idle time by cause
    Metric("idle_sync", "Idle: waiting for the host to be let go", "ms",
           "The device ran dry while the host was blocked in a wait, and stayed so until the next launch.", _TRACE,
           otherwise="read values later, or fewer of them; let the host run ahead"),
    Metric("idle_copy", "Idle: blocking copies", "ms",
           "The device had nothing else to do while a blocking copy of 64 KiB or more held the host.", _TRACE,
           otherwise="pinned memory, non_blocking copies, or none"),
    Metric("idle_launch", "Idle: launch overhead", "ms",
           "The next work was launched late, and the host did nothing but launch: eager Python is slower than the "
           "kernels.", _TRACE, otherwise="CUDA graphs, torch.compile, fused operators, larger batches"),
    Metric("idle_host", "Idle: host work", "ms",
           "The next work was launched late, after host work of 0.2 ms and more without any call to the device.",
           _TRACE, otherwise="move it off the critical path, or out of the loop"),
    Metric("idle_device", "Idle: between queued work", "ms",
           "Work was queued and the device did not begin: start-up of kernels, waits between streams.", _TRACE,
           otherwise="fewer, larger kernels; fewer cross-stream events"),
    Metric("idle_communication", "Idle: communication", "ms", "The next work was a collective that had not begun.",
           _TRACE, otherwise="overlap, stragglers, topology"),
    Metric("critical_path", "Critical path", "shares",
           "The longest chain of host work, launch calls, launch latency, device work and answers of waits through the "
           "unit, by kind. Only what lies on it shortens the unit when it gets faster.",
           "replay of the trace slices, the profiler's own cost taken off; needs two slices that can be replayed"),
    # findings
    Metric("calls_per_unit", "Calls", "a unit", "Executions of the flagged statement, a unit.", _TRACE),
    Metric("host_ms", "Host time", "ms", "Time inside the flagged statement on its thread, a unit.", _MARKS),
    Metric("call_ms", "Time of a call", "ms",
           "Host time of one execution of the flagged statement: median, 95th and 99th percentile.", _MARKS),
    Metric("blocked_ms", "Blocked", "ms", "The part of it in which the thread waits for the device.",
           f"{_MARKS}, less the host work that the trace shows beside the wait"),
    Metric("gpu_ms", "Device time", "ms", "Device work that the statement starts, a unit.", _TRACE),
    Metric("idle_ms", "Idle caused", "ms",
           "Time in which the device has nothing to do, from the statement's start to its thread's next device work.",
           _TRACE),
    Metric("predicted_saving", "Predicted saving", "% of a unit",
           "What a unit gains without the finding: a point and a 95 % range. By a replay of the trace where one passed "
           "its own test, else an upper bound («at most»). A prediction until an A/B run has shown it.",
           "replay or bound"),
    Metric("verified_saving", "Verified saving", "% of a unit",
           "What the patch gained in an A/B run in the program itself, with its 95 % interval.", "--verify"),
    # kernels and launches
    Metric("kernel_ms", "Kernel time", "ms", "Time of all runs of a kernel, a unit.", _TRACE),
    Metric("kernel_mean_us", "Mean duration", "µs", "Mean duration of one run of the kernel.", _TRACE),
    Metric("kernel_share", "Share of kernel time", "share", "The kernel's time ÷ time of all kernels.", _TRACE),
    Metric("bound", "Bound", "word",
           "What limits a kernel. latency: no longer than 5 µs, the device is not filled. memory: it uses each byte a "
           "few times at most. compute, memory of products, attention and convolutions: measured by counters, else by "
           "the shapes of their operators, each byte moved once, against the ridge point. unknown: nothing tells.",
           f"duration and kind of the kernel, {_SHAPES}, or {_NCU}"),
    Metric("tiny_share", "Tiny kernels", "share", "Kernels of 5 µs and less ÷ all kernels.", _TRACE),
    Metric("kernels_per_launch", "Kernels a launch", "number",
           "Kernels ÷ launches. Eager code has at most one; a graph launch starts many.", _TRACE),
    Metric("launch_latency_us", "Launch latency", "µs",
           "From a launch call's begin to its kernel's start, where the stream had been free: 10th percentile, median, "
           "90th percentile. The profiler's own cost is in it.", _TRACE),
    Metric("launch_call_us", "Launch call", "µs",
           "Duration of a launch call on the host. The profiler's own cost is in it.", _TRACE),
    # copies and communication
    Metric("copy_bytes", "Bytes copied", "bytes", "Bytes a unit.", _TRACE),
    Metric("copy_exposed_ms", "Exposed", "ms", "Time of copies that no kernel overlaps.", _TRACE),
    Metric("copy_rate", "Rate", "GB/s", "Bytes ÷ time of the copies. Pageable host memory is copied at a fraction of "
           "the link's rate.", _TRACE),
    Metric("communication_ms", "Communication", "ms", "Time in which collectives run, a unit.", _TRACE),
    Metric("communication_exposed_ms", "Exposed communication", "ms",
           "The part of it that no other kernel overlaps.", _TRACE),
    # device
    Metric("gpu_util_pct", "Device utilisation", "%",
           "Share of time in which a kernel was resident. One thread of one kernel is enough for 100 %.", _NVML),
    Metric("sm_active_pct", "SM active", "%", "Share of multiprocessor time with at least one warp.", _GPM,
           "above 60 %", "batch too small, or kernels too fine", 60.0, True),
    Metric("sm_occupancy_pct", "Occupancy", "%",
           "Warps resident ÷ warps that fit, over all multiprocessors and all time.", _GPM,
           "above 50 % while busy", "registers or shared memory; or nothing to run", 50.0, True),
    Metric("tensor_active_pct", "Tensor cores active", "%",
           "Share of time in which tensor cores work. Below 5 % is normal in decode.", _GPM),
    Metric("dram_active_pct", "Memory bandwidth used", "%",
           "Bytes moved to and from device memory ÷ what the device can move.", _GPM,
           "above 80 % where memory-bound, above 50 % where compute-bound", "access pattern, or the device idles"),
    Metric("sm_clock_mhz", "SM clock", "MHz", "Clock of the multiprocessors.", _NVML),
    Metric("memory_clock_mhz", "Memory clock", "MHz", "Clock of the device memory.", _NVML),
    Metric("power_w", "Power", "W", "Power drawn by the board.", _NVML),
    Metric("temperature_c", "Temperature", "°C", "Temperature of the device.", _NVML),
    Metric("memory_used_bytes", "Memory in use", "bytes", "Device memory in use by all processes.", _NVML),
    Metric("memory_util_pct", "Memory busy", "%", "Share of time in which device memory was read or written.", _NVML),
    Metric("pcie_tx_kb_s", "PCIe out", "kB/s", "Bytes a second from the device over PCIe.", _NVML),
    Metric("pcie_rx_kb_s", "PCIe in", "kB/s", "Bytes a second to the device over PCIe.", _NVML),
    Metric("throttled", "Throttled", "share", "Share of samples in which the device ran at reduced clocks, by reason.",
           _NVML, "never (the power cap apart)", "cooling, power supply, neighbours"),
    Metric("l2_hit_pct", "L2 hit rate", "%", "Share of requests that the L2 cache answers.", _NCU, "above 40 %",
           "block sizes, reuse of data", 40.0, True),
    Metric("occupancy_pct", "Achieved occupancy", "%", "Warps resident ÷ warps that fit, of one kernel.", _NCU,
           "above 50 %", "registers, shared memory, too few blocks", 50.0, True),
    Metric("stall", "Main stall", "word", "What warps of the kernel wait for most.", _NCU),
    Metric("intensity", "Arithmetic intensity", "FLOP/byte",
           "Operations ÷ bytes moved to and from device memory. Left of the ridge point bandwidth is the limit, right "
           "of it arithmetic.", f"{_GPM}, times the tabulated peaks; or {_NCU}"),
    Metric("ridge", "Ridge point", "FLOP/byte",
           "Peak of the arithmetic ÷ peak of the bandwidth: what a byte must be used for to be compute-bound.",
           "tabulated peaks of the device"),
    Metric("flops", "Arithmetic", "FLOP a unit",
           "Operations of matrix products, attention, convolutions and recurrent layers, an addition and a "
           "multiplication each counted; of causal attention only the pairs that see each other. Pointwise work, norms "
           "and softmax are left out. «At least» where an operator's shapes do not tell, or kernels that compute are "
           "launched by none.", _SHAPES),
    Metric("mfu", "MFU", "share",
           "Time that the unit's arithmetic takes at the device's peak, each dtype at its own ÷ the unit's unprofiled "
           "time. Meaningful for prefill and large batches; a decode is held against the bandwidth (MBU).",
           f"{_SHAPES}; peaks of the data sheet, without sparsity",
           otherwise="idle time first (gap ratio); then the products' sizes and dtypes"),
    Metric("mfu_busy", "MFU while busy", "share",
           "Time that the unit's arithmetic takes at the device's peak ÷ the time in which the device works, a unit: "
           "what the kernels make of the device, however long it idles between them.",
           f"{_SHAPES}, busy time from the same slice"),
    Metric("mfu_prefill", "MFU of prefill", "share",
           "Time that a request's arithmetic until its first token takes at the device's peak ÷ the time to first "
           "token. Only where one thread begins requests and their steps.",
           f"{_SHAPES}; time to first token from windows without profiler",
           otherwise="attention that fuses, larger chunks, a lower precision"),
    Metric("mbu", "MBU", "share",
           "(bytes of weights + bytes of KV cache) ÷ time per output token ÷ peak bandwidth. For decode.",
           "needs the model's size"),
    # memory
    Metric("memory_peak_bytes", "Peak memory", "bytes", "Most bytes in use by tensors at one time.",
           "allocator snapshot (--memory-snapshot)"),
    Metric("memory_fragmentation", "Fragmentation", "share",
           "Reserved and in no tensor at the peak ÷ reserved.", "allocator snapshot (--memory-snapshot)"),
    Metric("allocations", "Allocations", "a unit",
           "Blocks that the program asks PyTorch's caching allocator for, a unit; and how often it had to ask the "
           "device. In a steady step the latter are 0.", "the allocator's account (--memory), CUDA only"),
    Metric("mbu_weights", "MBU by weights alone", "share",
           "Bytes of the weights ÷ time of a step ÷ peak bandwidth. A lower bound of the MBU, which counts the KV "
           "cache too; meaningless where a step does not read every weight.", "--memory, and the tabulated peak"),
    # the run itself
    Metric("marks_pct", "Overhead of marks", "%",
           "Unit time with marks against without. Negative where the program was faster by chance.", _BASE),
    Metric("trace_pct", "Overhead of trace slices", "%",
           "Unit time with profiler and marks against without: why no time is read from slices.", _BASE),
    Metric("tool_s", "Time of the tool", "s", "What reading and judging the run took.", "wall clock"),
)  # fmt: skip

METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}


def find(name: str) -> Metric | None:
    """A metric by its name or title, however it is written."""
    wanted = _plain(name)
    return next((m for m in _TABLE if wanted in (_plain(m.name), _plain(m.title))), None)


def near(name: str) -> list[str]:
    """Names that resemble one that is unknown."""
    import difflib

    wanted = _plain(name)
    inside = [m.name for m in _TABLE if wanted and (wanted in _plain(m.name) or wanted in _plain(m.title))]
    return (inside or difflib.get_close_matches(name.lower(), list(METRICS), n=3, cutoff=0.5))[:5]


def explain(metric: Metric) -> Iterator[str]:
    """The lines of ``--explain-metric``."""
    import textwrap

    yield f"{metric.name}: {metric.title} ({metric.unit})"
    for label, text in (
        ("", metric.definition), ("read", metric.source), ("healthy", metric.healthy), ("else", metric.otherwise),
    ):  # fmt: skip
        if text:
            first = f"  {label:<8} " if label else "  "
            yield from textwrap.wrap(text, 100, initial_indent=first, subsequent_indent=" " * len(first))


def _plain(name: str) -> str:
    return "".join(char for char in name.lower() if char.isalnum())
