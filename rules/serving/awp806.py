"""AWP806 caching-off."""

from __future__ import annotations

from awp_lint.detector.finding import Confidence, RootCause
from awp_lint.rules.serving.enginerule import EngineRule


class CachingOff(EngineRule):
    """Prefix caching or chunked prefill is switched off."""

    id = "AWP806"
    name = "caching-off"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    words = (
        b"enable_prefix_caching",
        b"enable_chunked_prefill",
        b"disable_radix_cache",
        b"chunked_prefill_size",
        b"enable_block_reuse",
    )

    effect = "gives up work that the engine could reuse or overlap"
    advice = "remove it, or say in a comment why it is needed"

    summary = "prefix caching or chunked prefill is switched off"
    what = """
        `enable_prefix_caching=False`, `enable_chunked_prefill=False` (vLLM), `disable_radix_cache=True`,
        `chunked_prefill_size=-1` (SGLang), `enable_block_reuse=False` (TensorRT-LLM) and their other spellings.
        """
    why = """
        Without a prefix cache a system prompt or a chat history is computed again for every request. Without chunks a
        long prompt holds up the decode steps of all other requests.
        """
    fine = """
        - Prompts that share nothing, measurements, models whose state cannot be shared: say so in a comment.
        - Prefill and decode in engines of their own (`kv_producer`, `--kv-transfer-config`): shown at low confidence.
        - Tests and benchmarks.
        """
    safety = """
        No automatic rewrite: remove the setting and watch the hit rate that the engine reports.
        """
    references = ("https://docs.vllm.ai/en/latest/features/automatic_prefix_caching.html",)
    bad = """
        from vllm import LLM

        llm = LLM(model="lm", enable_prefix_caching=False)
        """
    good = """
        from vllm import LLM

        llm = LLM(model="lm", enable_prefix_caching=True)
        """
