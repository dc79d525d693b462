"""AWP707 unaligned-half-matmul."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, frequency_reason, short

_HALF = re.compile(r"bfloat16|float16|\.half\(\)|autocast")
_LEAST = 512  # a narrower layer is no large product
_LAYERS = frozenset({"torch.nn.Linear", "torch.nn.modules.linear.Linear"})


class UnalignedHalfMatmul(Rule):
    """A half-precision product with a dimension that tensor cores cannot tile."""

    id = "AWP707"
    name = "unaligned-half-matmul"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 80.0
    event = Event.NONE
    anywhere = True
    telling = re.compile(r"\d{3}")
    words = (b"Linear(",)
    nodes = (ast.Call,)
    calls = frozenset({"Linear"})

    summary = "a large half-precision layer has a width that is not a multiple of 8"
    what = """
        `nn.Linear` with a literal width of 512 or more that is not a multiple of 8, in a file that works in half
        precision.
        """
    why = """
        Rows of half-precision matrices must start on 16 bytes for the fast loads of the tensor-core kernels. With an
        odd width the library falls back to kernels with narrower loads, or pads by a copy.
        """
    fine = """
        - Small heads (ten classes), float32, widths from a configuration, which no file tells.
        - A vocabulary that is padded when the model is loaded.
        """
    safety = """
        No automatic rewrite: the weights on disk have this shape. Pad the weight with zero rows after loading and drop
        the extra columns of the result.
        """
    references = ("https://docs.nvidia.com/deeplearning/performance/dl-performance-matrix-multiplication/index.html",)
    bad = """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lm_head = nn.Linear(768, 50257, bias=False)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return self.lm_head(hidden_states)

        head = Head().to("cuda", torch.float16)
        """
    good = """
        import torch
        from torch import nn

        class Head(nn.Module):
            def __init__(self) -> None:
                super().__init__()
                self.lm_head = nn.Linear(768, 50304, bias=False)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return self.lm_head(hidden_states)[..., :50257]

        head = Head().to("cuda", torch.float16)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        widths = (argument(node, 0, "in_features"), argument(node, 1, "out_features"))
        odd = [w.value for w in widths if isinstance(w, ast.Constant) and type(w.value) is int]
        odd = [width for width in odd if width >= _LEAST and width % 8]
        if not odd or view.qualified(node.func) not in _LAYERS or not _HALF.search(file.text):
            return
        if view.regions(node) & (Region.TEST | Region.TRAINING | Region.TIMED):
            return
        width = odd[0]
        frequency = view.frequency(node)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` is {width} wide, which is not a multiple of 8",
            action=f"pad it to {(width + 63) // 64 * 64} and drop the extra columns",
            confidence=self.confidence,
            frequency=frequency,
            why=frequency_reason(frequency)[:1],
        )
