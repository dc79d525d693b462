"""The six layers and their options, in order of priority, each with what would make it apply to this run.

What an option is worth elsewhere is a prior: other programs gained it, this one may not. Where the run bounds the gain,
the bound stands beside it. Nothing here was measured by doing it; each option says what would have to be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from awp_lint.detector.layers.signals import Signals

LAYERS = ("system", "scheduling", "runtime", "compute", "memory", "communication")


@dataclass(frozen=True, slots=True)
class Fit:
    """Whether an option applies: "yes", "no" or "unknown"; on what grounds; what the run says it can gain at most."""

    applies: str
    why: str
    bound: str = ""


@dataclass(frozen=True, slots=True)
class Option:
    """``priority`` 0 comes first; ``effort`` 1 (a setting) to 4 (a change of the deployment)."""

    layer: str
    title: str
    priority: int
    effort: int
    prior: str
    measure: str
    fit: Callable[[Signals], Fit]
    rules: tuple[str, ...] = ()  # a finding of these shows that it applies, run or not


def _pct(share: float) -> str:
    return f"{100 * share:.0f} %"


def _unthrottled(s: Signals) -> Fit:
    if s.throttled is None:
        return Fit("unknown", "the device's clocks could not be read")
    if s.throttled:
        return Fit("yes", "the device ran at reduced clocks in a tenth of the samples and more")
    return Fit("no", "no reduced clocks were seen")


def _batching(s: Signals) -> Fit:
    if s.decode is False or s.unit == "run":
        return Fit("unknown", "steps could not be told apart")
    if s.memory_bound or s.launch_bound:
        room = s.unit_ms / max(s.busy_ms, 1e-9)
        grounds = "a step's weights are read once for all sequences in it" if s.memory_bound else (
            f"the device idles {_pct(s.gap)} of a {s.unit}: a larger batch fills it at hardly more host time"
        )  # fmt: skip
        return Fit("yes", grounds, f"about {room:.1f}× the device work fits into a {s.unit} of today's length")
    if s.tensor_active is not None and s.tensor_active >= 40:
        return Fit("no", f"tensor cores are busy {s.tensor_active:.0f} % of the time")
    return Fit("unknown", "neither memory-bound nor launch-bound by what was measured")


def _prefix(s: Signals) -> Fit:
    if s.ttft_ms is None:
        return Fit("unknown", "the time to the first token was not measured")
    long = s.tpot_ms is not None and s.ttft_ms > 5 * s.tpot_ms
    if long:
        return Fit("yes", f"the first token takes {s.ttft_ms:.0f} ms, a later one {s.tpot_ms:.1f} ms: "
                          "whether prompts share a beginning is not known")  # fmt: skip
    return Fit("no", "the first token costs little more than the others")


def _graphs(s: Signals) -> Fit:
    if s.graph_launches is not None and s.graph_launches >= 0.5 and s.gap < 0.2:
        return Fit("no", "graphs are launched already")
    grounds = f"the device idles {_pct(s.launch_idle)} of a {s.unit} behind launching"
    if s.launch_idle < 0.05:
        return Fit("no", grounds)
    return Fit("yes", grounds, f"at most {_pct(s.launch_idle)} of a {s.unit}")


def _fusion(s: Signals) -> Fit:
    small = s.latency_ms + s.other_ms
    share = small / s.unit_ms
    if s.kernels >= 100 and (s.launch_bound or share >= 0.15):
        return Fit("yes", f"{s.kernels:.0f} kernels a {s.unit}; {small:.2g} ms in small and elementwise ones",
                   f"at most {_pct(share + s.launch_idle)} of a {s.unit}, together with graphs")  # fmt: skip
    return Fit("no", f"small and elementwise kernels take {_pct(share)} of a {s.unit}")


def _waits(s: Signals) -> Fit:
    if s.sync_idle >= 0.02:
        return Fit("yes", f"the device idles {_pct(s.sync_idle)} of a {s.unit} behind waits: see the findings",
                   f"at most {_pct(s.sync_idle)} of a {s.unit}")  # fmt: skip
    return Fit("no", "waits cost less than 2 %")


def _flash(s: Signals) -> Fit:
    if s.attention_ms > 0 and not s.manual_attention:
        return Fit("no", "fused attention kernels run already")
    if s.manual_attention:
        return Fit("yes", "attention is written out (AWP501)", f"softmax kernels alone take {s.softmax_ms:.2g} ms")
    return Fit("unknown", "no attention kernel could be told by its name")


def _speculative(s: Signals) -> Fit:
    if s.decode is None:
        return Fit("unknown", "no decode loop was told apart")
    if s.tensor_active is not None and s.tensor_active >= 30:
        return Fit("no", f"tensor cores are busy {s.tensor_active:.0f} %: there is no spare arithmetic to spend")
    if s.launch_bound:
        return Fit("unknown", "launch-bound: a draft adds launches; graphs first, then look again")
    if s.memory_bound:
        return Fit("yes", "decode is limited by bandwidth and leaves arithmetic unused")
    return Fit("unknown", "whether decode is memory-bound was not measured")


def _weights(s: Signals) -> Fit:
    if s.four_bit:
        return Fit("no", "kernels with 4-bit weights run already")
    share = s.weights_ms / s.unit_ms
    if s.launch_bound:
        return Fit("no", f"products take {_pct(share)} of a {s.unit}: the host is the limit, not the weights' bytes")
    if not s.weights_ms:
        return Fit("unknown", "no product kernels were seen")
    if s.memory_bound:
        return Fit("yes", f"products take {_pct(share)} of a {s.unit} and are limited by bytes",
                   f"about {_pct(share / 2)} of a {s.unit} at half the bytes")  # fmt: skip
    return Fit(
        "unknown", f"products take {_pct(share)} of a {s.unit}; whether bytes or arithmetic limit them is not known"
    )


def _kv(s: Signals) -> Fit:
    share = s.attention_ms / s.unit_ms
    if s.attention_ms == 0:
        return Fit("unknown", "no fused attention kernel was seen, so that reading the cache has no price")
    if share >= 0.1:
        return Fit("yes", f"attention takes {_pct(share)} of a {s.unit}", f"about {_pct(share / 2)} of a {s.unit}")
    return Fit("no", f"attention takes {_pct(share)} of a {s.unit}; for capacity see the memory in use")


def _paged(s: Signals) -> Fit:
    if s.memory_used is None or not s.memory_total:
        return Fit("unknown", "the memory in use was not read")
    used = s.memory_used / s.memory_total
    if used >= 0.8:
        return Fit("yes", f"{_pct(used)} of the device's memory is in use: how much of it is padding is not known")
    return Fit("no", f"{_pct(used)} of the device's memory is in use: capacity does not limit the batch")


def _copies(s: Signals) -> Fit:
    if s.copies >= 0.03:
        return Fit("yes", f"copies between host and device take {_pct(s.copies)} of a {s.unit}",
                   f"at most {_pct(s.copies)} of a {s.unit}")  # fmt: skip
    return Fit("no", f"copies take {100 * s.copies:.1f} % of a {s.unit}")


def _overlap(s: Signals) -> Fit:
    if not s.communication_ms:
        return Fit("no", "no collectives ran")
    share = s.exposed_ms / s.unit_ms
    if share >= 0.05:
        return Fit("yes", f"collectives that nothing overlaps take {_pct(share)} of a {s.unit}",
                   f"at most {_pct(share)} of a {s.unit}")  # fmt: skip
    return Fit("no", f"exposed communication is {_pct(share)} of a {s.unit}")


def _split(s: Signals) -> Fit:
    if s.ttft_ms is None or s.tpot_ms is None:
        return Fit("unknown", "prefill and decode could not be told apart")
    return Fit("unknown", "whether prefills delay running decodes shows only in the tail under load")


def _share_device(s: Signals) -> Fit:
    if s.sm_active is None or s.memory_used is None or not s.memory_total:
        return Fit("unknown", "multiprocessor activity was not measured")
    used = s.memory_used / s.memory_total
    if s.sm_active < 30 and used < 0.4:
        count = min(int(0.9 / max(used, 0.02)), int(90 / max(s.sm_active, 2)), 7)
        return Fit("yes", f"multiprocessors are active {s.sm_active:.0f} %, memory is {_pct(used)} full",
                   f"up to {count} copies by memory and activity")  # fmt: skip
    return Fit("no", f"multiprocessors are active {s.sm_active:.0f} %, memory is {_pct(used)} full")


def _tensor_parallel(s: Signals) -> Fit:
    if s.ranks > 1:
        return Fit("unknown", f"{s.ranks} ranks run: compare with fewer ranks and more replicas")
    if s.memory_used is not None and s.memory_total and s.memory_used < 0.8 * s.memory_total:
        return Fit("no", "the model fits on one device: replicas give more throughput; only latency could gain")
    return Fit("unknown", "the model's size is not known")


OPTIONS: tuple[Option, ...] = (
    Option("system", "find what slows the device's clocks", 0, 2, "whatever the clocks lost",
           "clocks and reasons over an hour (nvidia-smi -q -d PERFORMANCE)", _unthrottled),
    Option("scheduling", "continuous batching, or a larger batch", 0, 1, "throughput 2–8×",
           "tokens/s and p99 at batch 1, 2, 4, … under the real mix of lengths", _batching,
           ("AWP201", "AWP803", "AWP805")),
    Option("compute", "fused attention (SDPA, FlashAttention-2/3)", 0, 1, "attention 2–4×",
           "--verify of the patch; time to first token at long prompts", _flash, ("AWP501", "AWP502", "AWP508")),
    Option("memory", "paged KV cache", 0, 1, "2–4× the sequences in memory",
           "share of the cache that is padding; the batch at which memory ends", _paged),
    Option("runtime", "mend the waits", 0, 1, "what the findings say", "--verify", _waits),
    Option("runtime", "CUDA graphs", 1, 2, "latency −20 to −40 % at small batch",
           "--verify of AWP401's patch, or the engine's own graphs", _graphs, ("AWP401", "AWP804")),
    Option("memory", "pinned memory, overlapped copies, or none", 1, 1, "what copies cost now", "--verify", _copies),
    Option("memory", "weights in 8 or 4 bits (FP8, W8A8, W4A16)", 1, 2, "throughput about 2×, memory up to 4× less",
           "accuracy on the task; step time at the batch in use", _weights),
    Option("memory", "KV cache in 8 bits", 1, 1, "half the cache's memory, −50 to −75 % of its bandwidth",
           "accuracy at long contexts; step time at full context", _kv, ("AWP807",)),
    Option("scheduling", "prefix caching", 1, 2, "prefill −80 to −95 % where prompts share a beginning",
           "share of prompt tokens that repeat", _prefix, ("AWP510", "AWP806")),
    Option("compute", "speculative decoding", 1, 3, "1.5–3×", "acceptance rate of a draft on real prompts",
           _speculative),
    Option("runtime", "fused operators (torch.compile, written kernels)", 2, 3, "latency −30 to −50 %",
           "--verify of AWP3xx and AWP405 patches; kernels a step after compilation", _fusion, ("AWP402", "AWP405")),
    Option("communication", "overlap, custom all-reduce", 2, 3, "hides 30–60 %; 30–50 % faster than NCCL when small",
           "exposed time of collectives before and after", _overlap, ("AWP901", "AWP903")),
    Option("scheduling", "prefill and decode apart", 2, 4, "p99 2–4×", "p99 of time per token under load", _split),
    Option("system", "several copies on the device (MIG, MPS)", 2, 3, "throughput by the number of copies that fit",
           "tokens/s of 2, 3, … copies under MPS", _share_device),
    Option("communication", "other tensor-parallel degree", 2, 3, "latency; costs throughput where one device suffices",
           "tokens/s/device at TP 1, 2, 4", _tensor_parallel, ("AWP809",)),
)  # fmt: skip
