"""Engines without CUDA graphs, in the spellings of three of them."""

import sglang
from lmdeploy import PytorchEngineConfig
from vllm import LLM, AsyncEngineArgs
from vllm.engine.arg_utils import EngineArgs

llm = LLM(model="lm")
args = AsyncEngineArgs(
    model="lm",
)
plain = EngineArgs("lm")
engine = sglang.Engine(model_path="lm")
config = PytorchEngineConfig()
