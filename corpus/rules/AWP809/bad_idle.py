"""Four devices reserved, two used."""

import os

from vllm import LLM

os.environ["CUDA_VISIBLE_DEVICES"] = "0,1,2,3"
llm = LLM(model="lm", tensor_parallel_size=2)  # expect: AWP809
