"""Too little to batch with."""

import sglang
from vllm import LLM, AsyncEngineArgs

llm = LLM(model="lm", max_num_seqs=1)  # expect: AWP805
args = AsyncEngineArgs(model="lm", gpu_memory_utilization=0.3, max_num_batched_tokens=512)  # expect: AWP805
engine = sglang.Engine(model_path="lm", max_running_requests=1)  # expect: AWP805
