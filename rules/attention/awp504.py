"""AWP504 explicit-causal-mask."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    callee,
    frequency_reason,
    lower,
    method,
    often,
    served_frequency,
    short,
    sureness,
)
from awp_lint.rules.edits import remove
from awp_lint.rules.flow import binding

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class ExplicitCausalMask(Rule):
    """A causal mask built for a fused call that can make its own."""

    id = "AWP504"
    name = "explicit-causal-mask"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 60.0
    event = Event.LAUNCHES
    words = (b"tril", b"triu", b"generate_square_subsequent_mask")
    nodes = (ast.Call,)
    calls = frozenset({"scaled_dot_product_attention"})
    doubted = True

    summary = "a causal mask is built at every call where is_causal serves"
    what = """
        A square triangular mask built in the function (`torch.ones(n, n).tril()`, `torch.triu` of a full matrix) that
        goes into `scaled_dot_product_attention` as it is.
        """
    why = """
        The mask costs kernels and memory that grow with the square of the length, and an explicit mask rules out the
        fastest kernels, which skip the masked half.
        """
    fine = """
        - The mask also holds padding, a window or a prefix.
        - Fewer queries than keys (decoding with a cache): `is_causal` aligns the mask at the top left, which is wrong
          there.
        """
    safety = """
        Unsafe: a boolean `tril`, an inverted boolean `triu` and `-inf` above the diagonal become `is_causal=True`.
        Queries and keys must be equally long, since the fused call aligns the triangle at the top left; numbers may
        differ in the last bits, and a NaN in a masked place no longer spreads. Other masks get a recommendation.
        """
    tolerance = 16
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.attention.bias.CausalBias.html",
    )
    bad = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                n = q.shape[-2]
                mask = torch.ones(n, n, dtype=torch.bool, device=q.device).tril()
                return F.scaled_dot_product_attention(q, k, v, attn_mask=mask)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                return F.scaled_dot_product_attention(q, k, v, is_causal=True)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "scaled_dot_product_attention":
            return
        mask = argument(node, 3, "attn_mask")
        built = _built(mask, view) if mask is not None else None
        if built is None:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        yield Candidate(
            node=built,
            message=f"a causal mask is built {often(frequency)} for the call in line {node.lineno}".replace("  ", " "),
            action=f"pass `is_causal=True` instead of `{short(mask, 30) if mask is not None else 'the mask'}`",
            confidence=lower(self.confidence, sureness(view, node, frequency)),
            frequency=frequency,
            why=(f"`{short(built, 60)}` is square and nothing is added to it", *frequency_reason(frequency)),
            data=node,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call, view = candidate.data, definition.view
        assert isinstance(call, ast.Call)
        mask = argument(call, 3, "attn_mask")
        if mask is None or argument(call, 5, "is_causal") is not None or len(call.args) > 4:
            return None
        whole = mask
        bound = binding(mask, view)
        if bound is not None:
            whole = bound[0]
        if not _causal(whole, view):
            return None
        keyword = next((k for k in call.keywords if k.value is mask), None)
        start = definition.range(mask)[0]
        if keyword is not None:
            start = definition.source.offset(keyword.lineno, keyword.col_offset)
        edits = [Edit(start, definition.range(mask)[1], "is_causal=True")]
        if bound is not None and isinstance(mask, ast.Name) and len(view.uses(mask.id)) == 1:
            dropped = remove(bound[1], definition)
            edits += [dropped] if dropped is not None else []
        return Fix(
            title="pass `is_causal=True` instead of a mask",
            safety=Safety.UNSAFE,
            edits=tuple(edits),
            effects=(Effect.NUMERICS,),
            requires=("queries and keys are equally long: never one query over a cache",),
        )


def _causal(mask: ast.expr, view: FunctionView) -> bool:
    """Whether an expression is surely the causal mask: what may be seen as bool, or -inf above the diagonal."""
    inverted = isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert)
    inner = mask.operand if isinstance(mask, ast.UnaryOp) else mask
    if not isinstance(inner, ast.Call) or callee(inner) not in ("tril", "triu"):
        return False
    found = method(inner)
    on_method = found is not None and isinstance(found[0], ast.Call)
    source = found[0] if found is not None and on_method else inner.args[0]
    diagonal = argument(inner, 0 if on_method else 1, "diagonal")
    above = isinstance(diagonal, ast.Constant) and diagonal.value == 1
    if not isinstance(source, ast.Call):
        return False
    boolean = "bool" in ast.unparse(source) and callee(source) == "ones"
    if boolean and callee(inner) == "tril":
        return not inverted and (diagonal is None or (isinstance(diagonal, ast.Constant) and diagonal.value == 0))
    if boolean:
        return inverted and above
    filled = argument(source, 1, "fill_value")
    infinite = filled is not None and ast.unparse(filled) in (
        "float('-inf')", "-float('inf')", "-torch.inf", "-math.inf", "-np.inf"
    )  # fmt: skip
    return not inverted and callee(inner) == "triu" and above and callee(source) == "full" and infinite


def _built(mask: ast.expr, view: FunctionView) -> ast.expr | None:
    """The expression that builds a plain triangular mask, where the mask is exactly that."""
    if isinstance(mask, ast.Name):
        bound = view.assignments(mask.id)
        if len(bound) != 1 or not isinstance(bound[0], ast.Assign):
            return None
        mask = bound[0].value
    if isinstance(mask, ast.UnaryOp) and isinstance(mask.op, ast.Invert):
        mask = mask.operand
    while isinstance(mask, ast.Call) and callee(mask) in ("to", "bool", "logical_not", "unsqueeze", "view"):
        found = method(mask)
        if found is None:
            return None
        mask = found[0]
    if not isinstance(mask, ast.Call) or callee(mask) not in ("tril", "triu"):
        return None
    found = method(mask)
    source = found[0] if found is not None and isinstance(found[0], ast.Call) else (mask.args[0] if mask.args else None)
    return mask if isinstance(source, ast.Call) and _square(source) else None


def _square(factory: ast.Call) -> bool:
    if callee(factory) not in ("ones", "full", "zeros"):
        return False
    sizes = factory.args
    if sizes and isinstance(sizes[0], ast.Tuple | ast.List):
        sizes = sizes[0].elts
    return len(sizes) >= 2 and ast.dump(sizes[0]) == ast.dump(sizes[1])
