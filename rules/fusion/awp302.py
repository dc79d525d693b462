"""AWP302 manual-norm."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import frequency_reason, judge, lower, names_in, often, reasons, runs_often, short
from awp_lint.rules.edits import drops, intermediates, mutated_between
from awp_lint.rules.flow import origins
from awp_lint.rules.fusion.algebra import number
from awp_lint.rules.fusion.context import called, compiled_class, declined, place, replaced_class
from awp_lint.rules.fusion.norms import Norm, norm
from awp_lint.rules.nodemap import Definition

_FUNCTIONS = {"rms": ("RMSNorm", "F.rms_norm", (2, 4)), "layer": ("LayerNorm", "F.layer_norm", (1, 0))}
_CALLS = frozenset({"mul", "div", "multiply", "divide"})


class ManualNorm(Rule):
    """RMSNorm or LayerNorm written out in elementwise operations and reductions."""

    id = "AWP302"
    name = "manual-norm"
    root_cause = RootCause.COMPUTE
    cost_us = 25.0
    event = Event.LAUNCHES
    words = (b"rsqrt", b"sqrt", b"-0.5", b".std(", b"torch.std(")
    nodes = (ast.BinOp, ast.Call)
    calls = frozenset(_CALLS)
    over = ("AWP301",)

    summary = "a normalisation is written out where one fused call computes it"
    what = """
        RMSNorm (`x * rsqrt(mean(x²) + eps)`) and LayerNorm (`(x - mean) / sqrt(var + eps)`) spelt out, in one
        expression or over several statements, in served code.
        """
    why = """
        Square, mean, add, reciprocal root and product are a kernel each, mostly in float32, and a decoder runs two to
        four normalisations in every layer: in a small-batch decode step they are the largest group of launches.
        `F.layer_norm` is one kernel; `F.rms_norm` is one since PyTorch 2.9 and from 2.4 on one call that later versions
        speed up.
        """
    fine = """
        - Division by the length of a vector (`x * rsqrt(sum(x²))`), statistics from elsewhere (batch norm, image
          normalisation with constants).
        - Compiled regions, and an engine's classes that it compiles as a whole (`@support_torch_compile`).
        - Classes whose `forward` a decorator replaces by a kernel, and functions named as reference implementations:
          shown at low confidence.
        - Functions whose comments speak of the built-in function: they have a reason. Deviations that divide by n - 1,
          which no built-in does: both at low confidence.
        - Tests, training, host arrays.
        """
    safety = """
        Unsafe: the fused kernel keeps its sums in float32 registers and rounds once, so that last bits differ. The
        rewrite keeps the casts and the product with the weight as they are; drop both by hand by passing `weight=`.
        Offered for the last dimension only; the unbiased deviation of old LayerNorm code has no equal built-in.
        """
    tolerance = 8
    references = (
        "pytorch/pytorch#153666 the fused RMSNorm kernel",
        "pytorch/pytorch#157345 RMSNorm against LayerNorm, measured",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.rms_norm.html",
    )
    bad = """
        import torch

        class Norm(torch.nn.Module):
            def __init__(self, dim: int, eps: float) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(dim))
                self.eps = eps

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                dtype = hidden_states.dtype
                hidden_states = hidden_states.float()
                variance = hidden_states.pow(2).mean(-1, keepdim=True)
                hidden_states = hidden_states * torch.rsqrt(variance + self.eps)
                return self.weight * hidden_states.to(dtype)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Norm(torch.nn.Module):
            def __init__(self, dim: int, eps: float) -> None:
                super().__init__()
                self.weight = torch.nn.Parameter(torch.ones(dim))
                self.eps = eps

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                return F.rms_norm(hidden_states, self.weight.shape, self.weight, self.eps)
        """

    def convinced(self, view: FunctionView, file: FileView) -> bool:
        return runs_often(view) or not view.frequency(view.node).chain  # once, before or after all layers

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.BinOp):
            if not isinstance(node.op, ast.Mult | ast.Div):
                return
        elif not (isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)) or node.func.attr not in _CALLS:
            return
        if not _takes_root(view):
            return
        found = norm(node, view)
        if found is None or not _whole(node, view):
            return
        label, call, since = _FUNCTIONS[found.kind]
        if file.target.torch is not None and file.target.torch < since:
            return
        value = view.value(found.x)
        if value.device is Device.HOST or (value.rank is not None and value.rank < 2):
            return
        counted = place(view, node)
        if counted is None:
            return
        frequency, cap = counted
        why: tuple[str, ...] = reasons(value, found.x)
        if compiled_class(view, file):
            return
        if replaced_class(view, file):
            cap = lower(cap, Confidence.LOW)
            why = (*why, "a decorator of the class can replace it by a fused kernel")
        if declined(view, file, call) or declined(view, file, label):
            cap = lower(cap, Confidence.LOW)
        if number(found.dims, view) != -1:
            cap = lower(cap, Confidence.LOW)  # channels before the last axis: the fused call wants two transposes
        elif not found.exact:
            cap = lower(cap, Confidence.LOW)  # no built-in divides by n - 1
        yield Candidate(
            node=node,
            message=f"`{short(node)}` is {label} in several kernels {often(frequency)}".rstrip(),
            action=_action(found, call),
            confidence=judge(frequency, value, cap=cap),
            frequency=frequency,
            why=(*why, *frequency_reason(frequency)),
            covers=tuple(part for part in ast.walk(node) if isinstance(part, ast.expr) and part is not node),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found, node = candidate.data, candidate.node
        if not isinstance(found, Norm) or not isinstance(node, ast.expr) or not found.exact or found.eps is None:
            return None
        view = definition.view
        if number(found.dims, view) != -1:
            return None
        source = _source(found, view)
        if source is None or not isinstance(source, ast.Name | ast.Attribute | ast.Call):
            return None
        kept = names_in(source) | (names_in(found.weight) if found.weight is not None else frozenset())
        spare = intermediates(node, kept, view)
        if any(mutated_between(statement, view.statement(node), kept, view) for statement in spare):
            return None
        edits = drops(spare, definition)
        if edits is None:
            return None
        definition.node(node)
        function = definition.torch_name(
            "torch.nn.functional.rms_norm" if found.kind == "rms" else "torch.nn.functional.layer_norm"
        )
        text = definition.text(source)
        shape = f"{definition.text(_bare(source))}.shape[-1:]"
        new = f"{function}({text}, {shape}, eps={definition.text(found.eps)})"
        if found.weight is not None:
            new = f"{definition.text(found.weight)} * {new}"
        return Fix(
            title=f"call `{_FUNCTIONS[found.kind][1]}`",
            safety=Safety.UNSAFE,
            edits=(*edits, definition.replace(node, new)),
            effects=(Effect.NUMERICS,),
            requires=(f"torch >= {'.'.join(map(str, _FUNCTIONS[found.kind][2]))}",) if found.kind == "rms" else (),
        )


_ROOTS = frozenset({"rsqrt", "sqrt", "std", "pow", "reciprocal"})


def _takes_root(view: FunctionView) -> bool:
    """Whether the definition may take the root that a norm divides by."""
    known: dict[None, bool] = view.memo.setdefault(_takes_root, {})
    if not known:
        known[None] = bool(_ROOTS & called(view)) or any(
            isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow) for node in view.nodes(ast.BinOp)
        )
    return known[None]


def _whole(node: ast.expr, view: FunctionView) -> bool:
    """Whether this is the largest product that is the norm: `weight * x * rsqrt(…)` is found once."""
    parent = view.parent(node)
    return not (
        isinstance(parent, ast.BinOp) and isinstance(parent.op, ast.Mult | ast.Div) and norm(parent, view) is not None
    )


def _action(found: Norm, call: str) -> str:
    x = short(found.x if found.kind == "rms" else found.source, 40)
    eps = "" if found.eps is None else f", eps={short(found.eps, 30)}"
    dims = found.dims
    last = isinstance(dims, ast.UnaryOp) and isinstance(dims.operand, ast.Constant) and dims.operand.value == 1
    if last:
        return f"call `{call}({x}, {x}.shape[-1:]{eps})`"
    return f"call `{call}` with the reduced dimensions last"


def _bare(node: ast.expr) -> ast.expr:
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node


def _source(found: Norm, view: FunctionView) -> ast.expr | None:
    """What to normalise, with the cast under which the statistics are taken: the result keeps its type then."""
    source = found.x if found.kind == "rms" else found.source
    if isinstance(found.source, ast.Call) and found.kind == "rms" and not isinstance(source, ast.Call):
        source = found.source
    if isinstance(source, ast.Call):
        inner = _bare(source)
        chain = [part for part in origins(source, view) if part is inner]
        return source if isinstance(inner, ast.Name | ast.Attribute) and (chain or _one_cast(source)) else None
    return source


def _one_cast(node: ast.Call) -> bool:
    return isinstance(node.func, ast.Attribute) and node.func.attr in ("float", "to")
