"""What a device kernel does, by its name, and what bounds it as far as that is known without counters."""

from __future__ import annotations

import re
from dataclasses import dataclass

TINY_US = 5.0  # a kernel that lasts no longer than this costs the host more to launch than the device to run

# The first pattern that is found in the name decides. Names come from cuBLAS, cuDNN, CUTLASS, PyTorch, Triton, NCCL.
_KINDS: tuple[tuple[str, str], ...] = (
    ("communication", r"nccl|rccl|all_?reduce|all_?gather|reduce_?scatter|cross_device"),
    ("attention", r"flash|fmha|attention|attn|sdpa|paged|mha_"),
    ("matrix × vector", r"gemv|gemmk1|dot_kernel|splitk_reduce"),
    ("convolution", r"conv|implicit_gemm|winograd|wgrad|dgrad"),
    ("matrix product", r"gemm|cutlass|xmma|nvjet|wgmma|cublas|matmul|triton_(tem|mm)|_mm_|bmm|magma"),
    ("softmax", r"softmax"),
    ("normalisation", r"norm"),
    ("sort or scan", r"sort|top_?k|radix|scan|cumsum|bitonic"),
    ("gather or scatter", r"index|gather|scatter|embedding|take|masked_(select|fill)|nonzero"),
    ("random", r"philox|distribution|random|bernoulli|multinomial"),
    ("copy", r"copy|catarray|transpose|permute|memcpy|memset|fill"),
    ("reduction", r"reduce|triton_(red|per)|argmax|argmin|_sum|mean"),
    ("elementwise", r"elementwise|triton_poi|pointwise|unrolled|vectorized|silu|gelu|relu|functor|binary|unary|arange"),
)
_COMPILED = tuple((kind, re.compile(pattern, re.IGNORECASE)) for kind, pattern in _KINDS)
# Each byte is used a few times at most, far below any device's ridge point.
_MEMORY = frozenset(
    ("matrix × vector", "softmax", "normalisation", "gather or scatter", "copy", "reduction", "elementwise", "random")
)


@dataclass(frozen=True, slots=True)
class Bound:
    """``word`` is latency, memory, compute, communication or unknown; ``why`` says on what grounds."""

    word: str
    why: str


def kind_of(name: str) -> str:
    """What a kernel does: "matrix product", "elementwise", …; "other" where its name does not tell."""
    return next((kind for kind, pattern in _COMPILED if pattern.search(name)), "other")


def bound_of(kind: str, mean_us: float) -> Bound:
    """What bounds a kernel of this kind and mean duration.

    Matrix products, attention and convolutions may be bound either way: their shapes or counters decide, which a trace
    does not hold.
    """
    if kind == "communication":
        return Bound("communication", "a collective")
    if mean_us <= TINY_US:
        return Bound("latency", f"lasts {mean_us:.1f} µs on average: no longer than its launch")
    if kind in _MEMORY:
        return Bound("memory", f"{kind} uses each byte a few times at most")
    return Bound("unknown", "depends on shapes; counters (--ncu) would tell")


_WRAPPERS = re.compile(r"gpu_|func_wrapper|BinaryFunctor|[AB]?UnaryFunctor|BUnaryFunctor|ReduceOp$|OpaqueType")
_INNER = re.compile(r"\w*(?:[Ff]unctor\w*|_kernel_cuda|_kernel_impl|_kernel|Ops)\b")
_LABEL = 72


def label(name: str) -> str:
    """A kernel's name as a person would call it: PyTorch's generic kernels by what they compute, the rest cut short.

    ``elementwise_kernel<128, 4, gpu_kernel_impl_nocast<BinaryFunctor<…, MulFunctor<float>>>>`` → ``MulFunctor
    (elementwise)``.
    """
    text = short_name(name, 2000)
    outer, _, arguments = text.partition("<")
    base = outer.rsplit("::", 1)[-1]
    if base.endswith(("elementwise_kernel", "reduce_kernel")):
        inner = next((word for word in _INNER.findall(arguments) if not _WRAPPERS.match(word)), "")
        if inner:
            return f"{inner} ({base.removesuffix('_kernel')})"
    if "cub::" in outer or base == "kernel":
        text = base if base != "kernel" else "::".join(outer.split("::")[-2:])
    elif len(text) > _LABEL and arguments:
        text = f"{outer}<…>"
    return text if len(text) <= _LABEL else text[: _LABEL - 1] + "…"


def short_name(name: str, limit: int = 160) -> str:
    """A kernel's name without its parameters and the namespaces that all have."""
    name = re.sub(r"^(?:void )?(?:std::)?enable_if<.*?>::type ", "", name)  # a return type that says nothing
    text = re.sub(r"^void |\(anonymous namespace\)::|at::native::|\bc10::|\bstd::", "", name).strip()
    depth = 0
    for place, char in enumerate(text):
        depth += (char == "<") - (char == ">")
        if char == "(" and depth <= 0 and place:
            text = text[:place]
            break
    return text if len(text) <= limit else text[: limit - 1] + "…"
