"""A 16-bit cache by choice: a matter for a run."""

from vllm import LLM

llm = LLM(model="lm", kv_cache_dtype="bfloat16")  # expect[low]: AWP807
