"""On, or left at the default."""

import sglang
from vllm import LLM

llm = LLM(model="lm", enable_prefix_caching=True, enable_chunked_prefill=True)
engine = sglang.Engine(model_path="lm", chunked_prefill_size=8192, disable_radix_cache=False)
