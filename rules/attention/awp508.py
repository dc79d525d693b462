"""AWP508 sdpa-fallback."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, argument, opaque, served_frequency, short
from awp_lint.rules.serving.enginerule import reason_given

_KERNELS = ("torch.nn.attention.sdpa_kernel", "torch.nn.attention._sdpa_kernel")
_OLD_KERNELS = ("torch.backends.cuda.sdp_kernel",)
_BACKEND = re.compile(r"(^|_)(math|reference|naive|eager|unfused)(_|$)")
_SWITCHES = ("torch.backends.cuda.enable_flash_sdp", "torch.backends.cuda.enable_mem_efficient_sdp")


class SdpaFallback(Rule):
    """Scaled dot-product attention confined to its unfused backend."""

    id = "AWP508"
    name = "sdpa-fallback"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 3000.0
    event = Event.LAUNCHES
    mark = MarkKind.STATEMENT
    words = (b"sdpa_kernel", b"sdp_kernel", b"_sdp(")
    nodes = (ast.Call,)
    calls = frozenset(name.rpartition(".")[2] for name in (*_KERNELS, *_OLD_KERNELS, *_SWITCHES))
    anywhere = True

    summary = "scaled dot-product attention is confined to its unfused backend"
    what = """
        `sdpa_kernel(SDPBackend.MATH)` alone, `sdp_kernel` with flash and memory-efficient attention off, or both fused
        kernels switched off by `enable_flash_sdp(False)` and `enable_mem_efficient_sdp(False)`.
        """
    why = """
        The math backend writes the whole score matrix to memory and reads it back: bytes and time grow with the square
        of the length, and each attention becomes several kernels.
        """
    fine = """
        - Double backward, forward-mode derivatives and export need it; so do comparisons in tests.
        - A function that is by its name the unfused backend (`math_attention`), beside others for the user to choose.
        - A comment that gives a reason: shown at low confidence, as is one fused kernel switched off while another
          stays.
        - Masks and dtypes that rule the fused kernels out at run time cannot be told from the code in general: the
          profile shows which kernels run.
        """
    safety = """
        A recommendation only: remove the restriction, or allow the fused backends first and math as the last.
        Results change within rounding.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.sdpa_kernel.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    )
    bad = """
        import torch
        import torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                with sdpa_kernel(SDPBackend.MATH):
                    return F.scaled_dot_product_attention(q, k, v)
        """
    good = """
        import torch
        import torch.nn.functional as F
        from torch.nn.attention import SDPBackend, sdpa_kernel

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.MATH]):
                    return F.scaled_dot_product_attention(q, k, v)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        dotted = view.qualified(node.func) or ""
        if not _confines(node, dotted):
            return
        if view.regions(node) & (IDLE | Region.FALLBACK) or _asked_for(node, view) or _BACKEND.search(_name(view)):
            return
        low = dotted in _SWITCHES and not _other_off(node, dotted, view)
        if dotted in _SWITCHES and not low and dotted != _SWITCHES[0]:
            return  # one finding for the two
        low = low or reason_given(file.text, node.lineno, "sdpa_kernel attention")
        what = (
            "switches one fused attention kernel off" if dotted in _SWITCHES and low else "leaves only the math kernels"
        )
        yield Candidate(
            node=node,
            message=f"`{short(node)}` {what} for attention",
            action="allow the fused kernels, and math as the last one",
            confidence=Confidence.LOW if low else self.confidence,
            frequency=served_frequency(view, node) or view.frequency(node),
            why=("the fused kernels are excluded by a literal",),
        )


def _name(view: FunctionView) -> str:
    return view.qualname.rpartition(".")[2].lower()


def _confines(call: ast.Call, dotted: str) -> bool:
    """Whether the call excludes a fused kernel, by literals."""
    if dotted in _KERNELS:
        return _only_math(call)
    if dotted in _OLD_KERNELS:
        return _fused_off(call)
    return dotted in _SWITCHES and _false(argument(call, 0, "enabled"))


def _only_math(call: ast.Call) -> bool:
    backends = argument(call, 0, "backends")
    if isinstance(backends, ast.List | ast.Tuple | ast.Set):
        return len(backends.elts) == 1 and _math(backends.elts[0])
    return backends is not None and _math(backends)


def _math(node: ast.expr) -> bool:
    return isinstance(node, ast.Attribute) and node.attr == "MATH"


def _false(node: ast.expr | None) -> bool:
    return isinstance(node, ast.Constant) and node.value is False


def _fused_off(call: ast.Call) -> bool:
    """Whether the old context manager leaves math alone: flash, memory-efficient (and, where named, cuDNN) off."""
    if opaque(call):
        return False
    given = [argument(call, position, name) for position, name in ((0, "enable_flash"), (2, "enable_mem_efficient"))]
    cudnn = argument(call, 3, "enable_cudnn")
    return all(_false(value) for value in given) and (cudnn is None or _false(cudnn))


def _other_off(call: ast.Call, dotted: str, view: FunctionView) -> bool:
    """Whether the other fused kernel is switched off in the same definition too."""
    wanted = _SWITCHES[1] if dotted == _SWITCHES[0] else _SWITCHES[0]
    return any(
        isinstance(other, ast.Call) and view.qualified(other.func) == wanted and _false(argument(other, 0, "enabled"))
        for other in view.nodes(ast.Call)
    )


def _asked_for(node: ast.AST, view: FunctionView) -> bool:
    """Whether a test decides: a setting of the user's, most likely."""
    parent = view.parent(node)
    while parent is not None:
        if isinstance(parent, ast.If | ast.IfExp):
            return True
        parent = view.parent(parent)
    return False
