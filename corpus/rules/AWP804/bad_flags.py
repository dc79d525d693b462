"""Engines without CUDA graphs, in the spellings of three of them."""

import sglang
from lmdeploy import PytorchEngineConfig
from vllm import LLM, AsyncEngineArgs
from vllm.engine.arg_utils import EngineArgs

llm = LLM(model="lm", enforce_eager=True)  # expect: AWP804
args = AsyncEngineArgs(
    model="lm",
    enforce_eager=True,  # expect: AWP804
)
plain = EngineArgs("lm", enforce_eager=True)  # expect: AWP804
engine = sglang.Engine(model_path="lm", disable_cuda_graph=True)  # expect: AWP804
config = PytorchEngineConfig(eager_mode=True)  # expect: AWP804
