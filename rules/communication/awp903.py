"""AWP903 exposed-collective."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import callee, frequency_reason, lower, names_in, often, served_frequency, short, sureness
from awp_lint.rules.communication.collectives import IN_PLACE, collective
from awp_lint.rules.flow import after
from awp_lint.rules.nodemap import Definition

_HEAVY = frozenset({
    "matmul", "mm", "bmm", "addmm", "linear", "einsum", "conv1d", "conv2d", "conv3d", "scaled_dot_product_attention",
    "baddbmm", "softmax", "layer_norm", "rms_norm",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Overlap:
    """A blocking collective, the statements beside it that do not need it, and the first that does."""

    statement: ast.Expr
    beside: tuple[ast.stmt, ...]
    waits: ast.stmt


class ExposedCollective(Rule):
    """A collective waited for at once although other work stands beside it."""

    id = "AWP903"
    name = "exposed-collective"
    root_cause = RootCause.COMMUNICATION
    confidence = Confidence.MEDIUM
    cost_us = 60.0
    event = Event.LAUNCHES
    words = (b"distributed",)
    nodes = (ast.Call,)
    calls = IN_PLACE

    summary = "a collective is waited for at once although independent work follows"
    what = """
        `all_reduce`, `reduce` or `broadcast` as a statement of its own, without `async_op=True`, followed by matrix
        products or module calls that neither read nor write its tensor.
        """
    why = """
        A blocking collective makes the stream wait until the link is done: the kernels behind it start only then,
        although they do not need its result. Issued asynchronously, it runs on its own stream beside them.
        """
    fine = """
        - The next statement needs the result, as in a tensor-parallel layer.
        - Only shapes, numbers and views in between.
        - Training, set-up.
        """
    safety = """
        Unsafe: `async_op=True`, and `wait()` before the first statement that reads the tensor. Other names for the same
        memory are not tracked.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/distributed.html#synchronous-and-asynchronous-collective-operations",
    )
    bad = """
        import torch
        import torch.distributed as dist
        from torch import nn

        class Expert(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.routed = nn.Linear(dim, dim)
                self.shared = nn.Linear(dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                routed = self.routed(hidden_states)
                dist.all_reduce(routed)
                shared = self.shared(hidden_states)
                return routed + shared
        """
    good = """
        import torch
        import torch.distributed as dist
        from torch import nn

        class Expert(nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.routed = nn.Linear(dim, dim)
                self.shared = nn.Linear(dim, dim)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                routed = self.routed(hidden_states)
                work = dist.all_reduce(routed, async_op=True)
                shared = self.shared(hidden_states)
                work.wait()
                return routed + shared
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        name = collective(node, view)
        if name not in IN_PLACE or not node.args or any(k.arg in ("async_op", None) for k in node.keywords):
            return
        found = _overlap(node, view)
        if found is None:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        tensor = short(node.args[0], 40)
        lines = f"line {found.beside[0].lineno}"
        if len(found.beside) > 1:
            lines = f"lines {found.beside[0].lineno} to {found.beside[-1].end_lineno}"
        what = f"`{name}` of `{tensor}` holds up {lines} {often(frequency)}, which need no `{tensor}`"
        yield Candidate(
            node=node,
            message=what.replace(" ,", ","),
            action=f"issue it with `async_op=True` and wait before line {found.waits.lineno}",
            confidence=lower(self.confidence, sureness(view, node, frequency)),
            frequency=frequency,
            why=frequency_reason(frequency),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        if not isinstance(found, _Overlap) or not isinstance(found.statement.value, ast.Call):
            return None
        call = found.statement.value
        definition.node(call)
        name = _fresh(definition.view)
        start, end = definition.range(call)
        text = definition.source.text[start:end]
        if not text.endswith(")") or text[:-1].rstrip().endswith(","):
            return None
        line = definition.source.line_starts[found.waits.lineno - 1]
        indent = definition.indent(found.waits)
        return Fix(
            title="issue the collective asynchronously",
            safety=Safety.UNSAFE,
            edits=(
                Edit(start, end, f"{name} = {text[:-1]}, async_op=True)"),
                Edit(line, line, f"{indent}{name}.wait(){definition.source.newline}"),
            ),
            effects=(Effect.TIMING,),
            requires=(f"nothing between reads or writes the memory of `{short(call.args[0], 30)}` by another name",),
        )


def _overlap(call: ast.Call, view: FunctionView) -> _Overlap | None:
    statement = view.statement(call)
    parent = view.parent(statement)
    if not isinstance(statement, ast.Expr) or statement.value is not call or parent is None:
        return None
    tensor = call.args[0]
    if not isinstance(tensor, ast.Name):
        return None
    beside: list[ast.stmt] = []
    for following in after(statement, parent):
        if tensor.id in _names(following):
            return _Overlap(statement, tuple(beside), following) if _heavy(beside, view) else None
        if isinstance(following, ast.Return | ast.Raise | ast.Break | ast.Continue) or _communicates(following, view):
            return None
        beside.append(following)
    return None


def _names(statement: ast.stmt) -> frozenset[str]:
    return frozenset(n.id for n in ast.walk(statement) if isinstance(n, ast.Name)) | names_in(statement)


def _communicates(statement: ast.stmt, view: FunctionView) -> bool:
    return any(isinstance(part, ast.Call) and collective(part, view) is not None for part in ast.walk(statement))


def _heavy(statements: Sequence[ast.stmt], view: FunctionView) -> bool:
    """Whether device work worth hiding a collective behind stands in the statements."""
    for statement in statements:
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and (callee(part) in _HEAVY or view.value(part.func).kind is Kind.MODULE):
                return True
            if isinstance(part, ast.BinOp) and isinstance(part.op, ast.MatMult):
                return True
    return False


def _fresh(view: FunctionView) -> str:
    """A name for the handle that the function does not use."""
    used = {n.id for n in view.nodes(ast.Name) if isinstance(n, ast.Name)}
    name = "work"
    while name in used:
        name += "_"
    return name
