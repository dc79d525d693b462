"""AWP205 row-sampling-loop."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import in_pieces
from awp_lint.rules.common import (
    frequency_reason,
    hot_frequency,
    loop_body,
    lower,
    often,
    short,
    sureness,
    target_names,
)

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_SCORES = re.compile(r"(^|_)(logits?|scores?|probs?|log_?probs?|lprobs)(_|\d|$)", re.IGNORECASE)
#: Tables about scores: how many there are, where a row's begin.
_COUNTS = re.compile(
    r"(^|_)(cu|num|len|lens|length|lengths|count|counts|offsets?|indptr|idx|ind(ices|ex)|start|loc)(_|$)"
)
_LOOPS = frozenset({LoopKind.BATCH, LoopKind.REQUESTS, LoopKind.TOKENS, LoopKind.ELEMENTS, LoopKind.UNKNOWN})


class RowSamplingLoop(Rule):
    """Sampling, penalties or masks applied to the scores row by row."""

    id = "AWP205"
    name = "row-sampling-loop"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 200.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"logits", b"scores", b"probs")
    nodes = (ast.For,)
    repeated = True
    doubted = True
    over = ("AWP203",)

    summary = "scores of a decode step are penalised or sampled row by row in Python"
    what = """
        A Python loop over sequences or requests, in code that runs for every token, that reads or writes one row of a
        tensor of logits, scores or probabilities at a time, or gives each row to a sampler of its own.
        """
    why = """
        Every row launches its own small kernels, copies its own list of ids to the device and often waits; the time of
        a step then grows with the batch on the host, not on the device.
        """
    fine = """
        - Vectorised forms; rows of host tensors or lists.
        - Loops over layers or beams that launch nothing, and over chunks of the batch (`scores[start:end]`).
        """
    safety = """
        Unsafe: a penalty on the tokens that are there already (`for token in set(tokens[row].tolist())`) becomes one
        `gather` and one `scatter_` over the batch, which takes whole numbers of 64 bits on the same device. Other loops
        get a recommendation, since rows may ask for different processors, whose state stays with each request: gather
        the ids of all rows into one index tensor (one pinned copy) and use one `scatter_`, `masked_fill_` or
        `index_put_`.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.scatter_.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.Tensor.index_put_.html",
    )
    bad = """
        import torch
        from transformers import LogitsProcessor

        class Ban(LogitsProcessor):
            def __init__(self, banned: list) -> None:
                self.banned = banned

            def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
                for i in range(scores.shape[0]):
                    scores[i, self.banned[i]] = float("-inf")
                return scores
        """
    good = """
        import torch
        from transformers import LogitsProcessor

        class Ban(LogitsProcessor):
            def __init__(self, mask: torch.Tensor) -> None:
                self.mask = mask

            def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
                return scores.masked_fill(self.mask, float("-inf"))
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.For)
        if view.loop_kind(node) not in _LOOPS or in_pieces(view, node):
            return
        row = _row(node, view) or _given_row(node, view)
        if row is None:
            return
        frequency = hot_frequency(view, row)
        if frequency is None or (frequency.known and not {Level.TOKEN, Level.STEP} & set(frequency.path)):
            return
        if frequency.known and frequency.path.count(Level.LAYER):
            return
        name = short(row.value, 30)
        yield Candidate(
            node=node,
            message=f"`{name}` is worked on row by row {often(frequency)}: `{short(row, 40)}`".replace("  ", " "),
            action=f"collect the indices of all rows and update `{name}` once",
            confidence=lower(self.confidence, sureness(view, row, frequency, view.value(row.value))),
            frequency=frequency,
            why=(f"`{name}` holds the scores of the batch", *frequency_reason(frequency)),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.batching.penalty import at_once

        return at_once(candidate.node, definition)


def _row(loop: ast.For, view: FunctionView) -> ast.Subscript | None:
    """A row of device scores that the body indexes by the loop's own variable."""
    names = target_names(loop.target)
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if not isinstance(part, ast.Subscript) or view.parent(part) is None:
                continue
            first = part.slice.elts[0] if isinstance(part.slice, ast.Tuple) and part.slice.elts else part.slice
            if isinstance(first, ast.Slice):
                several = isinstance(first.upper, ast.Name | ast.Attribute)  # `scores[start:end]`: a part, not a row
                first = first if several else first.lower or first
            if not (isinstance(first, ast.Name) and first.id in names):
                continue
            if (
                _SCORES.search(_last(part.value))
                and not _COUNTS.search(_last(part.value))
                and view.value(part.value).is_tensor
                and not view.value(part.value).on_host
            ):
                return part
    return None


def _given_row(loop: ast.For, view: FunctionView) -> ast.Subscript | None:
    """A row of device scores that each item's own object is called with: ``for i, pick in …: pick(ids, out[i])``."""
    names = target_names(loop.target)
    body = [part for statement in loop_body(loop) for part in ast.walk(statement)]
    own = names | {part.id for part in body if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    for call in body:
        if not isinstance(call, ast.Call) or view.parent(call) is None:
            continue
        if not isinstance(call.func, ast.Name) or call.func.id not in names:
            continue
        for arg in call.args:
            if not isinstance(arg, ast.Name) or not _SCORES.search(arg.id) or _COUNTS.search(arg.id):
                continue
            for statement in view.assignments(arg.id):
                row = _cut(statement, body, own)
                if row is not None and view.value(row.value).on_device:
                    return row
    return None


def _cut(statement: ast.stmt, body: list[ast.AST], own: frozenset[str]) -> ast.Subscript | None:
    """The row that a statement of a loop's body cuts by what the loop itself counts."""
    if not isinstance(statement, ast.Assign) or not any(statement is part for part in body):
        return None
    for part in ast.walk(statement.value):
        if not isinstance(part, ast.Subscript) or not isinstance(part.value, ast.Name | ast.Attribute):
            continue
        if any(isinstance(index, ast.Name) and index.id in own for index in ast.walk(part.slice)):
            return part
    return None


def _last(node: ast.expr) -> str:
    return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
