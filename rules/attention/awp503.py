"""AWP503 expanded-kv."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    assigned_name,
    callee,
    frequency_reason,
    lower,
    often,
    own_text,
    served_frequency,
    short,
    sureness,
)

_KV = re.compile(r"(^|_)(k|v|key|value|keys|values)(_|s?$|\d)|(key|value)_?(states|layer)", re.IGNORECASE)


class ExpandedKv(Rule):
    """Key and value heads repeated for grouped-query attention before the fused call."""

    id = "AWP503"
    name = "expanded-kv"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 80.0
    event = Event.COPY
    words = (b"scaled_dot_product_attention",)
    nodes = (ast.Call,)
    calls = frozenset({"scaled_dot_product_attention"})

    summary = "key and value heads are copied out for grouped-query attention before the fused call"
    what = """
        `repeat_kv(k, n)` or `k.repeat_interleave(n, dim=1)` whose result goes into `scaled_dot_product_attention`,
        where the call takes no mask and could group the heads itself.
        """
    why = """
        The copies write every key and value n times to memory and the kernel reads them n times; with `enable_gqa=True`
        it reads each once.
        """
    fine = """
        - With a mask, in fp32 or with large heads the grouped call may fall back to the slow kernel: shown at low
          confidence only.
        - torch before 2.5; functions that decide between both forms.
        """
    safety = """
        A recommendation only: pass `enable_gqa=True` and the unexpanded heads, then measure.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
    )
    bad = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                k = k.repeat_interleave(4, dim=1)
                v = v.repeat_interleave(4, dim=1)
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "scaled_dot_product_attention":
            return
        torch = file.target.torch
        if (torch is not None and torch < (2, 5)) or "enable_gqa" in own_text(view, file):
            return
        key = argument(node, 1, "key")
        repeat = _repeat_of(key, view) if key is not None else None
        if repeat is None:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        mask = argument(node, 3, "attn_mask")
        unmasked = mask is None or (isinstance(mask, ast.Constant) and mask.value is None)
        confidence = lower(self.confidence, sureness(view, node, frequency))
        if not unmasked:
            confidence = Confidence.LOW
        name = short(key, 30) if key is not None else "key"
        yield Candidate(
            node=repeat,
            message=f"`{short(repeat, 50)}` copies the heads of `{name}` {often(frequency)}".rstrip(),
            action="pass `enable_gqa=True` to `scaled_dot_product_attention` and leave the heads as they are",
            confidence=confidence,
            frequency=frequency,
            why=(f"its result is the key of the call in line {node.lineno}", *frequency_reason(frequency)),
        )


def _repeat_of(key: ast.expr, view: FunctionView) -> ast.Call | None:
    """The call that repeats heads, where the key is its result."""
    if isinstance(key, ast.Call):
        return key if _repeats(key) else None
    if not isinstance(key, ast.Name):
        return None
    for node in view.nodes(ast.Call):
        assert isinstance(node, ast.Call)
        if _repeats(node) and assigned_name(view, node) == key.id and node.lineno < key.lineno:
            return node
    return None


def _repeats(call: ast.Call) -> bool:
    name = callee(call)
    if name in ("repeat_kv", "_repeat_kv", "repeat_kv_heads"):
        return True
    if name != "repeat_interleave":
        return False
    dim = argument(call, 1, "dim") if isinstance(call.func, ast.Attribute) else None
    source = call.func.value if isinstance(call.func, ast.Attribute) else None
    if source is None or not _KV.search(ast.unparse(source)):
        source = call.args[0] if call.args else None
        dim = argument(call, 2, "dim")
    return source is not None and bool(_KV.search(ast.unparse(source))) and dim is not None
