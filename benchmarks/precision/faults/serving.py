"""Faults and look-alikes of the rules 8xx: serving."""

from __future__ import annotations

from faults.table import faults

SERVING = (
    faults(
        "AWP804",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enforce_eager=True)
        ---
        def engine_{u}(name: str):
            import sglang

            return sglang.Engine(model_path=name, disable_cuda_graph=True)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enforce_eager=False)
        ---
        def engine_{u}(name: str, eager: bool):
            from vllm import LLM

            return LLM(model=name, enforce_eager=eager)
        """,
    ),
    faults(
        "AWP805",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, max_num_seqs=1)
        ---
        def engine_{u}(name: str):
            from vllm import AsyncEngineArgs

            return AsyncEngineArgs(model=name, gpu_memory_utilization=0.3)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, max_num_seqs=256, gpu_memory_utilization=0.9)
        """,
    ),
    faults(
        "AWP806",
        "module",
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enable_prefix_caching=False)
        ---
        def engine_{u}(name: str):
            import sglang

            return sglang.Engine(model_path=name, disable_radix_cache=True)
        """,
        """
        def engine_{u}(name: str):
            from vllm import LLM

            return LLM(model=name, enable_prefix_caching=True, enable_chunked_prefill=True)
        """,
    ),
    faults(
        "AWP811",
        "module",
        """
        def start_{u}() -> None:
            import os

            os.environ["CUDA_LAUNCH_BLOCKING"] = "1"
        ---
        def start_{u}() -> None:
            torch.autograd.set_detect_anomaly(True)
        """,
        """
        def start_{u}() -> None:
            import os

            os.environ["CUDA_LAUNCH_BLOCKING"] = "0"
        ---
        def start_{u}() -> None:
            torch.autograd.set_detect_anomaly(False)
        """,
    ),
)
