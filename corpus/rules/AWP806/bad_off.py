"""Caching and chunking switched off."""

import sglang
from tensorrt_llm.llmapi import KvCacheConfig
from vllm import LLM

llm = LLM(model="lm", enable_prefix_caching=False)  # expect: AWP806
other = LLM(model="lm", enable_chunked_prefill=False)  # expect: AWP806
engine = sglang.Engine(model_path="lm", disable_radix_cache=True)  # expect: AWP806
whole = sglang.Engine(model_path="lm", chunked_prefill_size=-1)  # expect: AWP806
cache = KvCacheConfig(enable_block_reuse=False)  # expect: AWP806
