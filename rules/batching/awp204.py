"""AWP204 expert-loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, callee, frequency_reason, loop_body, lower, often, short, sureness

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_FUSED = re.compile(r"grouped_mm|fused_moe|fused_experts|moe_align|megablocks|scattermoe|batched_mm|gmm\(")


class ExpertLoop(Rule):
    """A Python loop over the experts of a layer."""

    id = "AWP204"
    name = "expert-loop"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 300.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"expert", b"set(")
    nodes = (ast.For,)
    repeated = True
    doubted = True

    summary = "a Python loop over experts launches small kernels for each"
    what = """
        A loop over all experts, or over those that were hit, in a forward: each pass finds its tokens and runs its own
        small matrix products. Likewise a loop over what the rows of a batch ask for (`set(adapters)`), whose pass takes
        its rows, multiplies them and puts them back.
        """
    why = """
        A decode step hits few experts with one token each: the products are tiny, so the step is bound by launches,
        and finding the tokens (`where`, `nonzero`) waits for the device once an expert.
        """
    fine = """
        - The fallback beside a grouped or fused implementation.
        - Large batches, where each expert's product is big; set-up and loading of weights.
        """
    safety = """
        Unsafe: where every pass finds its rows by comparing the choices with the expert's number and puts results back
        into these rows alone, the diff goes through the chosen experts (`picked.unique().tolist()`): one more wait a
        layer, one less for each expert that no row chose, and the same bits. It is wrong where the choices hold other
        numbers than those of the loop's experts (a mark for dropped tokens, experts of other ranks).
        The greater remedy is a recommendation: stack the experts' weights and use a grouped product
        (`torch._grouped_mm`, a fused mixture-of-experts kernel). It needs the weights laid out anew where checkpoints
        are loaded.
        """
    references = (
        "huggingface/transformers#32429 skipping experts against export",
        "huggingface/transformers#40114 the same trade later",
        "Lightning-AI/litgpt#823 where both forms were weighed",
    )
    bad = """
        import torch
        from torch import nn

        class MoE(nn.Module):
            def __init__(self, dim: int, num_experts: int) -> None:
                super().__init__()
                self.experts = nn.ModuleList([nn.Linear(dim, dim) for _ in range(num_experts)])
                self.num_experts = num_experts

            def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
                out = torch.zeros_like(x)
                for expert_idx in range(self.num_experts):
                    rows = torch.where(picked == expert_idx)[0]
                    out[rows] += self.experts[expert_idx](x[rows])
                return out
        """
    good = """
        import torch
        from torch import nn

        class MoE(nn.Module):
            def __init__(self, dim: int, num_experts: int) -> None:
                super().__init__()
                self.weight = nn.Parameter(torch.zeros(num_experts, dim, dim))

            def forward(self, x: torch.Tensor, picked: torch.Tensor) -> torch.Tensor:
                return torch.bmm(x.unsqueeze(1), self.weight[picked]).squeeze(1)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For)
        grouped = _of_groups(node)
        if not grouped and view.loop_kind(node) is not LoopKind.EXPERTS:
            return
        work = _rows_work(node, view) if grouped else _work(node, view)
        if work is None or view.regions(work) & IDLE:
            return
        frequency = view.frequency(work)
        if frequency.known and (not frequency.path or view.qualname.endswith("__init__")):
            return
        confidence = lower(self.confidence, sureness(view, work, frequency))
        if grouped and Level.LAYER not in frequency.path:
            return
        if _FUSED.search(file.text) or view.regions(work) & Region.FALLBACK:
            confidence = Confidence.LOW
        yield Candidate(
            node=node,
            message=f"`{short(work, 40)}` is launched for each of `{short(node.iter, 30)}` {often(frequency)}".rstrip(),
            action=("stack their" if grouped else "stack the experts'") + " weights and use one grouped product",
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.batching.chosen import chosen_alone

        return chosen_alone(candidate.node, definition)


def _of_groups(loop: ast.For) -> bool:
    """``for name in sorted(set(names))``: once for each thing that rows ask for."""
    source = loop.iter
    while isinstance(source, ast.Call) and callee(source) in ("sorted", "list", "enumerate") and source.args:
        source = source.args[0]
    return isinstance(source, ast.Call) and callee(source) == "set" and len(source.args) == 1


def _rows_work(loop: ast.For, view: FunctionView) -> ast.expr | None:
    """The product of some rows of a tensor, where the pass puts the result into these rows of another."""
    parts = [part for s in loop_body(loop) for part in ast.walk(s) if view.parent(part) is not None]
    targets = [
        part.target if isinstance(part, ast.AugAssign) else part.targets[0]
        for part in parts
        if isinstance(part, ast.AugAssign | ast.Assign)
    ]
    put = {ast.unparse(target.slice) for target in targets if isinstance(target, ast.Subscript)}
    for part in parts:
        if not (isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult)):
            continue
        rows = part.left
        if isinstance(rows, ast.Subscript) and ast.unparse(rows.slice) in put and view.value(rows.value).on_device:
            return part
    return None


def _work(loop: ast.For, view: FunctionView) -> ast.expr | None:
    """What a pass computes: the call of an expert, or a matrix product."""
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if view.parent(part) is None:
                continue
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
                return part
            if isinstance(part, ast.Call):
                dotted = view.qualified(part.func) or ""
                if view.value(part.func).kind is Kind.MODULE or dotted in (
                    "torch.nn.functional.linear",
                    "torch.matmul",
                    "torch.mm",
                ):
                    return part
                if re.search(r"(^|_|\.)experts?(_layer)?(\[|$)", ast.unparse(part.func)):
                    return part
    return None
