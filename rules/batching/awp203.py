"""AWP203 batch-axis-loop."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.library import lookup
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import over_batches
from awp_lint.rules.common import (
    IDLE,
    callee,
    frequency_reason,
    hot_frequency,
    loop_body,
    lower,
    names_in,
    often,
    short,
    sureness,
    target_names,
)
from awp_lint.rules.plain import no_tensor
from awp_lint.rules.sync.reads import iterables

_ELEMENTWISE = (ast.Add, ast.Sub, ast.Mult, ast.Div, ast.MatMult, ast.Pow)


class BatchAxisLoop(Rule):
    """A Python loop over the rows of a device tensor that launches kernels for each."""

    id = "AWP203"
    name = "batch-axis-loop"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 40.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"for ",)
    nodes = (ast.For,)
    repeated = True
    doubted = True

    summary = "a Python loop over the rows of a device tensor launches kernels for each row"
    what = """
        `for i in range(batch_size)` or `for row in x` over the first axis of a device tensor, whose body computes on
        the row's own data only: at least two device operations a row (one where the loop goes over every position), no
        model call, and nothing that depends on the row before.
        """
    why = """
        Each operation launches one small kernel a row, some microseconds of Python and driver each; one operation over
        the whole tensor launches one.
        """
    fine = """
        - Rows of different lengths, data-dependent sizes, other control flow a row: there is no single call.
        - Loops over layers, steps, tokens, experts, and calls of a model (AWP201).
        - Few rows, in set-up or once a request, or before the steps of a diffusion pipeline.
        - Each row against all of something (`rows[i, :, None] - edges`), which bounds the memory: low confidence.
        """
    safety = """
        No automatic rewrite: index the batch axis away (`x[:, ...]`), use broadcasting, `torch.vmap`, or pad and mask.
        No diff, since the body has to be right for all rows at once, which only its author knows.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.vmap.html",
        "https://docs.pytorch.org/docs/stable/notes/broadcasting.html",
    )
    bad = """
        import torch

        class Penalty(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    batch_size = scales.shape[0]
                    for b in range(batch_size):
                        scales[b] = torch.sigmoid(scales[b]) * 2.0
                    hidden_states = layer(hidden_states, scales)
                return hidden_states
        """
    good = """
        import torch

        class Penalty(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, scales: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    scales = torch.sigmoid(scales) * 2.0
                    hidden_states = layer(hidden_states, scales)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For)
        if view.regions(node) & IDLE or over_batches(node) or _branches(node):
            return
        rows = _rows(node, view)
        if rows is None or view.value(rows).rank == 1 or _rows_differ(node, view, file):
            return
        launches = [part for part in _parts(node, view) if _launches(part, view, file)]
        writes = _row_writes(node, view)
        many = view.loop_kind(node) is LoopKind.ELEMENTS
        if len(launches) + len(writes) < (1 if many else 2) or _calls_modules(node, view):
            return
        launches = [*launches, *writes]
        frequency = hot_frequency(view, launches[0])
        if frequency is None:
            return
        level = sureness(view, node, frequency, view.value(rows))
        if _pairs(node, rows, view):
            level = Confidence.LOW
        name = short(rows, 40)
        yield Candidate(
            node=node,
            message=f"{len(launches)} operations are launched for each row of `{name}` {often(frequency)}".rstrip(),
            action=f"compute on all rows of `{name}` at once",
            confidence=lower(self.confidence, level),
            frequency=frequency,
            why=(
                f"a row's work is `{short(launches[0], 40)}` and {len(launches) - 1} more",
                *frequency_reason(frequency),
            ),
        )


def _branches(loop: ast.For) -> bool:
    """Control flow that differs from row to row, or rows that are collected: there may be no single call."""
    kinds = (ast.If, ast.While, ast.Try, ast.Break, ast.Continue, ast.Return, ast.Yield, ast.For, ast.With)
    return any(isinstance(part, kinds) for statement in loop.body for part in descendants(statement))


def _rows_differ(loop: ast.For, view: FunctionView, file: FileView) -> bool:
    """Whether a row's size depends on its data (masks, waits), or a pass needs what the one before left."""
    # A slice that depends on the row's number alone (`mask[i, : i + 1]`) has a form for all rows.
    counts = callee(loop.iter) == "range" if isinstance(loop.iter, ast.Call) else False
    bound: set[str] = set() if counts else set(target_names(loop.target))
    for statement in loop.body:
        for part in ast.walk(statement):
            if isinstance(part, ast.AugAssign) and isinstance(part.target, ast.Name):
                return True
            if isinstance(part, ast.Slice) and any(
                names_in(b) & bound or _read_of_tensor(b, view) for b in (part.lower, part.upper) if b
            ):
                return True
            if isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Name):
                value = view.value(part.slice)
                if value.is_tensor and part.slice.id not in target_names(loop.target):
                    return True
            if isinstance(part, ast.Call) and view.parent(part) is not None:
                fact = lookup(view.qualified(part.func) or "", file.target)
                if fact is not None and fact.waits and fact.wait_condition in (None, "one-argument"):
                    return True
        if isinstance(statement, ast.Assign) and not (counts and _counted(statement.value, view)):
            for target in statement.targets:
                bound |= target_names(target)
    return _carried(loop)


def _read_of_tensor(bound: ast.expr, view: FunctionView) -> bool:
    """Whether a bound is an entry of a tensor, another in each row: ``lengths[i]``."""
    return any(isinstance(part, ast.Subscript) and view.value(part).is_tensor for part in ast.walk(bound))


def _pairs(loop: ast.For, rows: ast.expr, view: FunctionView) -> bool:
    """Whether a row is set against all of something: ``rows[i, :, None] - edges``. For all rows at once that would take
    as many times the memory, which the loop is there to save."""
    name = ast.unparse(rows)
    for statement in loop.body:
        for part in ast.walk(statement):
            row = isinstance(part, ast.Subscript) and ast.unparse(part.value) == name
            if not (row and isinstance(part, ast.Subscript) and isinstance(part.slice, ast.Tuple)):
                continue
            added = any(isinstance(each, ast.Constant) and each.value is None for each in part.slice.elts)
            if added and isinstance(view.parent(part), ast.BinOp):
                return True
    return False


def _carried(loop: ast.For) -> bool:
    """Whether a pass reads a name before it binds it anew: ``state = weight * row + (1 - weight) * state``."""
    read: set[str] = set()
    written: set[str] = set()
    for statement in loop.body:
        if not isinstance(statement, ast.Assign):
            read |= names_in(statement) - written
            continue
        read |= names_in(statement.value) - written
        for target in statement.targets:
            if isinstance(target, ast.Name):
                written.add(target.id)
    return not read.isdisjoint(written - target_names(loop.target))


def _counted(node: ast.expr, view: FunctionView) -> bool:
    """A number computed from numbers (`i // width`), which has a form for all rows as well."""
    return view.value(node).kind is Kind.SCALAR and not any(
        isinstance(part, ast.Call) or (isinstance(part, ast.expr) and view.value(part).is_tensor)
        for part in ast.walk(node)
    )


def _rows(loop: ast.For, view: FunctionView) -> ast.expr | None:
    """The device tensor whose first axis the loop goes over."""
    for source in iterables(loop.iter):
        if not no_tensor(source, view) and view.value(source).is_tensor and view.value(source).on_device:
            return source
    if view.loop_kind(loop) not in (LoopKind.BATCH, LoopKind.ELEMENTS) or not isinstance(loop.target, ast.Name):
        return None
    index = loop.target.id
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if isinstance(part, ast.Subscript) and view.parent(part) is not None:
                first = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
                if isinstance(first, ast.Name) and first.id == index and view.value(part.value).on_device:
                    return part.value
    return None


def _parts(loop: ast.For, view: FunctionView) -> Iterator[ast.expr]:
    """Expressions of the body that use the row."""
    reached = set(target_names(loop.target))
    for statement in loop.body:
        if isinstance(statement, ast.Assign) and names_in(statement.value) & reached:
            for target in statement.targets:
                reached |= target_names(target)
        for part in ast.walk(statement):
            if isinstance(part, ast.BinOp | ast.Call) and view.parent(part) is not None and names_in(part) & reached:
                yield part


def _launches(part: ast.expr, view: FunctionView, file: FileView) -> bool:
    if not view.value(part).on_device:
        return False
    if isinstance(part, ast.BinOp):
        return isinstance(part.op, _ELEMENTWISE)
    assert isinstance(part, ast.Call)
    fact = lookup(view.qualified(part.func) or "", file.target)
    return fact is not None and fact.launches and not fact.waits


def _row_writes(loop: ast.For, view: FunctionView) -> list[ast.expr]:
    """Assignments of the body into a row of a device tensor: one kernel each."""
    names = target_names(loop.target)
    return [
        target
        for statement in loop.body
        for target in (statement.targets if isinstance(statement, ast.Assign) else [])
        if isinstance(target, ast.Subscript) and names_in(target.slice) & names and view.value(target.value).on_device
    ]


def _calls_modules(loop: ast.For, view: FunctionView) -> bool:
    calls = [
        part
        for statement in loop.body
        for part in ast.walk(statement)
        if isinstance(part, ast.Call) and view.parent(part) is not None
    ]
    return any(view.value(call.func).kind is Kind.MODULE or view.targets(call) for call in calls)
