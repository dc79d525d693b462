"""What attention of a shape that the process has not seen costs, and again: cuDNN's and the other ways.

    python benchmarks/check_plans.py          (needs a CUDA device)

One query against a cache that grows by a token, in half precision, as in a decode step; then prompts. Printed is the
time of a call with the device waited for: the first at a shape, and five behind it, medians over shapes. What differs
from the one to the other is built once for every combination of shapes and strides.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import torch
import torch.nn.functional as F

HEADS, GROUPS, DIM = 32, 8, 64


def timed(call: Callable[[], object], times: int) -> float:
    """Microseconds of one of so many calls."""
    torch.cuda.synchronize()
    begun = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - begun) / times * 1e6


def measure(name: str, lengths: range, queries: int | None) -> None:
    """Print a row: the first call at each length and the ones behind it."""
    first, again = [], []
    for length in lengths:
        key = torch.randn(1, GROUPS, length, DIM, device="cuda", dtype=torch.bfloat16)
        query = torch.randn(1, HEADS, queries or length, DIM, device="cuda", dtype=torch.bfloat16)

        def call(query: torch.Tensor = query, key: torch.Tensor = key) -> object:
            return F.scaled_dot_product_attention(query, key, key, is_causal=queries is None, enable_gqa=True)

        first.append(timed(call, 1))
        again.append(timed(call, 5))
    low, high = min(first), max(first)
    middle = statistics.median(first)
    print(f"{name:28}  first {middle:9.1f} us ({low:.1f}-{high:.1f})  again {statistics.median(again):7.1f} us")


@torch.inference_mode()
def main() -> None:
    print(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, cuDNN {torch.backends.cudnn.version()}")
    timed(lambda: torch.randn(64, 64, device="cuda") @ torch.randn(64, 64, device="cuda"), 3)
    for enabled in (True, False):
        torch.backends.cuda.enable_cudnn_sdp(enabled)
        word = "as it is" if enabled else "without cuDNN"
        measure(f"a step, {word}", range(200, 240), 1)
        measure(f"a prompt, {word}", range(300, 310), None)


if __name__ == "__main__":
    main()
