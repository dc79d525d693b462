"""AWP505 attention-weights-returned."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    assigned_name,
    frequency_reason,
    often,
    opaque,
    served_frequency,
    short,
    sureness,
)

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_MHA = frozenset({"torch.nn.MultiheadAttention", "torch.nn.modules.activation.MultiheadAttention"})


class AttentionWeightsReturned(Rule):
    """Attention weights computed for nobody."""

    id = "AWP505"
    name = "attention-weights-returned"
    root_cause = RootCause.MEMORY
    cost_us = 200.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"MultiheadAttention", b"output_attentions")
    nodes = (ast.Call,)
    repeated = True
    doubted = True

    summary = "attention weights are computed and then thrown away"
    what = """
        A call of `nn.MultiheadAttention` without `need_weights=False` whose second result is dropped, and
        `output_attentions=True` where nothing reads `.attentions`.
        """
    why = """
        The weights are the score matrix, queries × keys for every head: to return them the fused kernels are passed by,
        and the matrix is written to memory.
        """
    fine = """
        - The weights are used, returned or passed on.
        - Once a request: low confidence. Tests and training.
        """
    safety = """
        Unsafe (structure): `need_weights=False` makes the second result `None`.
        """
    tolerance = 16
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.MultiheadAttention.html",
        "https://huggingface.co/docs/transformers/main_classes/output",
    )
    bad = """
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.attn = nn.MultiheadAttention(dim, 8, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out, _ = self.attn(x, x, x)
                return x + out
        """
    good = """
        import torch
        from torch import nn

        class Block(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.attn = nn.MultiheadAttention(dim, 8, batch_first=True)

            def forward(self, x: torch.Tensor) -> torch.Tensor:
                out, _ = self.attn(x, x, x, need_weights=False)
                return x + out
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        dropped, asked = _second_dropped(node, view) and not opaque(node), _asked(node)
        if not (dropped or asked):
            return
        value = view.value(node.func)
        if value.kind is Kind.MODULE and value.cls in _MHA:
            if argument(node, 4, "need_weights") is not None or not dropped:
                return
            message, action = f"`{short(node.func, 40)}(...)` computes its weights", "pass `need_weights=False`"
        elif asked and _never_read(node, view):
            message = f"`{short(node.func, 40)}(...)` returns all attention weights"
            action = "delete `output_attentions=True`"
        else:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency)
        if frequency.path == (Level.REQUEST,):
            confidence = Confidence.LOW  # one attention, beside all that a request does
        yield Candidate(
            node=node,
            message=f"{message} {often(frequency)} and nothing uses them".replace("  ", " "),
            action=action,
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
            data=value.cls in _MHA,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        import libcst as cst

        call = candidate.node
        if not candidate.data or not isinstance(call, ast.Call):
            return None
        concrete = definition.node(call)
        if not isinstance(concrete, cst.Call) or not concrete.args:
            return None
        last = max(
            [*call.args, *(k.value for k in call.keywords)], key=lambda n: (n.end_lineno or 0, n.end_col_offset or 0)
        )
        end = definition.range(last)[1]
        return Fix(
            title="ask for no weights: `need_weights=False`",
            safety=Safety.UNSAFE,
            edits=(Edit(end, end, ", need_weights=False"),),
            effects=(Effect.STRUCTURE, Effect.NUMERICS),
        )


def _second_dropped(call: ast.Call, view: FunctionView) -> bool:
    """``out, _ = attn(...)`` with ``_`` unused, or ``attn(...)[0]``."""
    parent = view.parent(call)
    if isinstance(parent, ast.Subscript) and parent.value is call:
        return isinstance(parent.slice, ast.Constant) and parent.slice.value == 0
    if isinstance(parent, ast.Assign) and len(parent.targets) == 1 and isinstance(parent.targets[0], ast.Tuple):
        parts = parent.targets[0].elts
        if len(parts) == 2 and isinstance(parts[1], ast.Name):
            return not view.uses(parts[1].id)
    return False


def _asked(call: ast.Call) -> bool:
    wanted = argument(call, None, "output_attentions")
    return isinstance(wanted, ast.Constant) and wanted.value is True


def _never_read(call: ast.Call, view: FunctionView) -> bool:
    """Whether the result stays in a local name of which only other attributes are read."""
    parent = view.parent(call)
    if isinstance(parent, ast.Attribute):
        return not parent.attr.endswith("attentions")
    name = assigned_name(view, call)
    if name is None:
        return False
    uses = view.uses(name)
    return bool(uses) and all(
        isinstance(above := view.parent(use), ast.Attribute) and not above.attr.endswith("attentions") for use in uses
    )
