"""AWP304 split-projection."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Event, Related, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import ancestors, frequency_reason, judge, lower, often, short, whole_program
from awp_lint.rules.flow import Version, version
from awp_lint.rules.fusion.context import class_node, place

_GROUPS = (
    re.compile(r"(?:^|_)(q|k|v)(?:_proj(?:ection)?|_lin(?:ear)?)?$"),
    re.compile(r"^(?:to|w|wq|fc|proj|linear|lin)_?(q|k|v)$"),
    re.compile(r"^(query|key|value)(?:_proj(?:ection)?|_layer)?$"),
    re.compile(r"(?:^|_)(gate|up)_proj(?:ection)?$"),
    re.compile(r"^(w1|w3)$"),
    re.compile(r"^(wi_0|wi_1)$"),
    re.compile(r"^add_(q|k|v)_proj$"),
)
_LINEAR = re.compile(r"(^|\.)(Linear|ColumnParallelLinear|Linear4bit|Linear8bitLt|LoRACompatibleLinear)$")
#: Signs of a program that serves its own layers; a library's definitions are fused by others, at load time.
_OWN = re.compile(r"inference_mode|no_grad\(|\.eval\(\)")
_FUSED = re.compile(r"fuse|qkv|merged|packed", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class _Projection:
    call: ast.Call
    attribute: str
    family: tuple[int, str]  # which of the groups, and what stands before the name


class SplitProjection(Rule):
    """Separate linear layers for q, k, v or for gate and up on one input."""

    id = "AWP304"
    name = "split-projection"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 8.0
    event = Event.LAUNCHES
    words = (b"proj", b"to_q", b"query", b"w1(", b"wi_0", b"wq(", b"lin")
    nodes = (ast.FunctionDef,)
    repeated = True

    summary = "several linear layers read the same input where one product serves"
    what = """
        The projections of one attention (`q_proj`, `k_proj`, `v_proj` and their spellings) or of one gated MLP
        (`gate_proj`, `up_proj`) called one after the other on the same tensor, in a layer of a decode or denoise step.
        """
    why = """
        Each is a product of its own that reads the input again, and at small batch each is bound by its launch or by
        too few blocks to fill the device; keys and values of grouped-query attention are the smallest. One product
        with the concatenated weights, split afterwards by views, computes the same.
        """
    fine = """
        - Projections of different inputs (cross-attention), or separated by tensor parallelism, quantisation or
          adapters that need them apart.
        - Definitions of a model library, which loaders and engines fuse: shown at low confidence unless the same file
          switches gradients off or calls `eval`, as a program that serves its own layers does.
        - Code that fuses them on request (`fuse_qkv_projections`): the split branch is a fallback.
        - Large batches, long prefill and the many positions of a picture, where each product fills the device by
          itself: shown at low confidence outside a decode. Compiled or captured steps gain less.
        """
    safety = """
        No automatic rewrite: weights have to be concatenated at load time (`torch.cat` of the weights, one `Linear`,
        `split` of its output). No diff, since checkpoints, adapters, quantisation and tensor parallelism go by the
        names of the separate layers.
        """
    references = (
        "huggingface/diffusers#9185 fused projections in attention processors",
        "https://docs.vllm.ai/en/latest/contributing/model/basic.html",
    )
    bad = """
        import torch
        from torch import nn

        class MLP(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.gate_proj = nn.Linear(dim, 4 * dim)
                self.up_proj = nn.Linear(dim, 4 * dim)
                self.down_proj = nn.Linear(4 * dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                gate = nn.functional.silu(self.gate_proj(hidden_states))
                return self.down_proj(gate * self.up_proj(hidden_states))

        class Decoder(nn.Module):
            def __init__(self, dim: int, depth: int) -> None:
                super().__init__()
                self.layers = nn.ModuleList([MLP(dim) for _ in range(depth)])

            @torch.inference_mode()
            def generate(self, hidden_states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
                for _ in range(max_new_tokens):
                    for layer in self.layers:
                        hidden_states = layer(hidden_states)
                return hidden_states
        """
    good = """
        import torch
        from torch import nn

        class MLP(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.gate_up_proj = nn.Linear(dim, 8 * dim)
                self.down_proj = nn.Linear(4 * dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                gate, up = self.gate_up_proj(hidden_states).chunk(2, dim=-1)
                return self.down_proj(nn.functional.silu(gate) * up)

        class Decoder(nn.Module):
            def __init__(self, dim: int, depth: int) -> None:
                super().__init__()
                self.layers = nn.ModuleList([MLP(dim) for _ in range(depth)])

            @torch.inference_mode()
            def generate(self, hidden_states: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
                for _ in range(max_new_tokens):
                    for layer in self.layers:
                        hidden_states = layer(hidden_states)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        for group in _groups(view):
            first = group[0].call
            if any(isinstance(p, ast.If | ast.IfExp) and _mentions_fusion(p.test) for p in ancestors(view, first)):
                continue
            counted = place(view, first)
            if counted is None:
                continue
            frequency, cap = counted
            if not (Level.LAYER in frequency.path and {Level.TOKEN, Level.STEP} & set(frequency.path)):
                cap = lower(cap, Confidence.LOW)
            linear = [view.value(p.call.func) for p in group]
            known = all(v.kind is Kind.MODULE and v.cls is not None and _LINEAR.search(v.cls) for v in linear)
            # over the many positions of a picture a product fills the device by itself; a token's does not
            own = whole_program(frequency) or _OWN.search(file.text) is not None
            if not (known and Level.TOKEN in frequency.path and own):
                cap = lower(cap, Confidence.LOW)
            cls = class_node(view, file)
            if cls is not None and any(isinstance(s, ast.FunctionDef) and _FUSED.search(s.name) for s in cls.body):
                cap = lower(cap, Confidence.LOW)
            source = first.args[0]
            names = ", ".join(f"`{p.attribute}`" for p in group)
            yield Candidate(
                node=first,
                message=f"{names} read the same `{short(source, 40)}` one by one {often(frequency)}".rstrip(),
                action="concatenate their weights at load time, make one product and split it",
                confidence=lower(self.confidence, cap, judge(frequency, view.value(source))),
                frequency=frequency,
                why=frequency_reason(frequency),
                related=tuple(
                    Related(view.path, p.call.lineno, f"`{short(p.call.func)}` reads the same input") for p in group[1:]
                ),
            )


def _groups(view: FunctionView) -> Iterator[list[_Projection]]:
    """Projections that belong together: one family, one input in one state, one block."""
    found: dict[tuple[tuple[int, str], str, Version, int], list[_Projection]] = {}
    for call in view.nodes(ast.Call):
        assert isinstance(call, ast.Call)
        projection = _projection(call)
        if projection is None:
            continue
        source = call.args[0]
        assert isinstance(source, ast.Name)
        block = view.parent(view.statement(call))
        key = (projection.family, source.id, version(source.id, source, view), id(block))
        group = found.setdefault(key, [])
        if all(p.attribute != projection.attribute for p in group):
            group.append(projection)
    yield from (group for group in found.values() if len(group) >= 2)


def _projection(call: ast.Call) -> _Projection | None:
    if len(call.args) != 1 or call.keywords or not isinstance(call.args[0], ast.Name):
        return None
    func = call.func
    if not isinstance(func, ast.Attribute) or not isinstance(func.value, ast.Name):
        return None
    for index, pattern in enumerate(_GROUPS):
        match = pattern.search(func.attr)
        if match is not None:
            before = f"{func.value.id}.{func.attr[: match.start(1)]}"
            return _Projection(call, func.attr, (index, before))
    return None


def _mentions_fusion(test: ast.expr) -> bool:
    return any(
        _FUSED.search(part.attr if isinstance(part, ast.Attribute) else part.id)
        for part in ast.walk(test)
        if isinstance(part, ast.Attribute | ast.Name)
    )
