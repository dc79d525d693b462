"""AWP807 wide-kv."""

from __future__ import annotations

from awp_lint.detector.finding import Confidence, RootCause
from awp_lint.rules.serving.enginerule import EngineRule


class WideKv(EngineRule):
    """The KV cache is kept in 16 bits explicitly."""

    id = "AWP807"
    name = "wide-kv"
    root_cause = RootCause.MEMORY
    confidence = Confidence.LOW
    words = (b"kv_cache_dtype",)

    effect = "keeps the cache at twice the width of FP8"
    advice = "if a run shows a full cache, try `fp8`"

    summary = "the KV cache is kept in 16 bits explicitly"
    what = """
        `kv_cache_dtype` set to a 16-bit type.
        """
    why = """
        A KV cache of 8 bits holds twice the tokens and is read in half the time. It matters where the cache is full or
        decoding is bound by memory.
        """
    fine = """
        - Always, until a run shows a full cache: no file tells how full it is, nor what fewer bits cost in quality.
        Shown at low confidence only.
        """
    safety = """
        No automatic rewrite: try `fp8` and judge the quality.
        """
    references = ("https://docs.vllm.ai/en/latest/features/quantization/quantized_kvcache.html",)
    bad = """
        from vllm import LLM

        llm = LLM(model="lm", kv_cache_dtype="bfloat16")
        """
    good = """
        from vllm import LLM

        llm = LLM(model="lm", kv_cache_dtype="fp8")
        """
