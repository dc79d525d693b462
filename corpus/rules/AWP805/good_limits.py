"""Usual limits, and values that are not written down."""

import os

from vllm import LLM

llm = LLM(model="lm", max_num_seqs=128, gpu_memory_utilization=0.9, max_num_batched_tokens=8192)
other = LLM(model="lm", gpu_memory_utilization=float(os.environ.get("SHARE", "0.9")))
