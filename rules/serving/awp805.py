"""AWP805 starved-engine."""

from __future__ import annotations

from awp_lint.detector.finding import Confidence, RootCause
from awp_lint.rules.serving.enginerule import EngineRule


class StarvedEngine(EngineRule):
    """A serving engine is given too little to batch with."""

    id = "AWP805"
    name = "starved-engine"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    words = (
        b"max_num_seqs",
        b"gpu_memory_utilization",
        b"max_num_batched_tokens",
        b"max_running_requests",
        b"mem_fraction_static",
        b"max_batch_size",
        b"free_gpu_memory_fraction",
        b"cache_max_entry_count",
    )

    effect = "leaves the engine little to batch with"
    advice = "raise it or leave it at its default, or say in a comment why it is so low"

    summary = "a serving engine is given too little to batch with"
    what = """
        One or two sequences at a time (`max_num_seqs`, `max_running_requests`, `max_batch_size`), less than half of the
        memory (`gpu_memory_utilization`, `mem_fraction_static`), or a token budget below 1,024 a step
        (`max_num_batched_tokens`).
        """
    why = """
        Continuous batching reads the weights once for all running requests. With room for two, requests queue while the
        device is mostly idle; with little memory the cache holds few of them.
        """
    fine = """
        - Several engines that share one device on purpose, a device with other tenants: say so in a comment.
        - One user at a time.
        - Tests and benchmarks.
        """
    safety = """
        No automatic rewrite: leave the limit at its default, or size it by the free cache blocks that the engine
        reports.
        """
    references = ("https://docs.vllm.ai/en/latest/configuration/optimization.html",)
    bad = """
        from vllm import LLM

        llm = LLM(model="lm", max_num_seqs=1)
        """
    good = """
        from vllm import LLM

        llm = LLM(model="lm", max_num_seqs=128)
        """
