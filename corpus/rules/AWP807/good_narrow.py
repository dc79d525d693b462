"""FP8, and the default."""

from vllm import LLM

llm = LLM(model="lm", kv_cache_dtype="fp8")
other = LLM(model="lm", kv_cache_dtype="auto")
