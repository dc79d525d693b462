"""AWP108 invariant-read."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, Level, LoopKind
from awp_lint.rules.alike import alike_in_layers
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    frequency_reason,
    hot_frequency,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.sync.reads import READ_NAMES, device_read

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

#: Arguments that model code passes unchanged from layer to layer: what describes the batch, not its content.
_SAME_FOR_ALL_LAYERS = re.compile(
    r"(\w+_)?(cu_?seq_?len(s|gths)?|seq_?len(s|gths)|lengths?|grid_thw|grid_hws|spatial_shapes|position_ids"
    r"|cache_position|attention_mask|attn_mask|key_padding_mask|padding_mask|level_start_index|image_sizes|timesteps?|sigma)(_\w+)?"
)
_LOOPS = frozenset({
    LoopKind.LAYERS, LoopKind.STEPS, LoopKind.TOKENS, LoopKind.BATCH, LoopKind.REQUESTS, LoopKind.ELEMENTS,
    LoopKind.EXPERTS,
})  # fmt: skip


class InvariantRead(Rule):
    """A device value that is the same in every pass, read in every pass."""

    id = "AWP108"
    name = "invariant-read"
    root_cause = RootCause.RUNTIME
    cost_us = 60.0
    event = Event.WAIT
    mark = MarkKind.CALL
    words = (b".item", b".tolist", b".cpu", b".numpy", b"int(", b"float(")
    nodes = (ast.Call,)
    calls = READ_NAMES
    repeated = True
    doubted = True
    over = ("AWP101",)

    summary = "a device value that does not change in the loop is read in every pass"
    what = """
        A read (`.item()`, `.tolist()`, `int()`, …) inside a loop of a value that nothing in the loop writes; and,
        across functions, a read in each layer of what describes the batch (`cu_seqlens`, masks, lengths, grids), which
        model code passes unchanged through all layers, or of a parameter that the file's own calls pass so.
        """
    why = """
        Every pass waits for the device to hand over a number that the host has known since the first.
        """
    fine = """
        - Values that the loop computes or writes, also in place.
        - What a voice or another reference is turned into, once for all that is made with it: low confidence.
        - Host tensors; loops of set-up, training and debug code.
        """
    safety = """
        Unsafe: a read in a loop of the same function moves before it, which costs a wait where the loop never runs.
        Across functions a recommendation: read once a forward above the layers, and pass the number down.
        """
    references = (
        "huggingface/transformers#39870 the longest segment read again in every layer",
        "huggingface/transformers#40060 a series of patches that took such reads out",
    )
    bad = """
        import torch

        class Tower(torch.nn.Module):
            def __init__(self, blocks: torch.nn.ModuleList) -> None:
                super().__init__()
                self.blocks = blocks

            def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
                for block in self.blocks:
                    longest = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
                    hidden_states = block(hidden_states, cu_seqlens, longest)
                return hidden_states
        """
    good = """
        import torch

        class Tower(torch.nn.Module):
            def __init__(self, blocks: torch.nn.ModuleList) -> None:
                super().__init__()
                self.blocks = blocks

            def forward(self, hidden_states: torch.Tensor, cu_seqlens: torch.Tensor) -> torch.Tensor:
                longest = (cu_seqlens[1:] - cu_seqlens[:-1]).max().item()
                for block in self.blocks:
                    hidden_states = block(hidden_states, cu_seqlens, longest)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        read = device_read(node, view)
        if read is None:
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        loop = _invariant_loop(read.source, view)
        source = short(read.source, 40)
        if loop is not None:
            reason = f"nothing in the loop of line {_line(loop)} writes `{source}`"
            action = f"read `{source}` once before the loop"
        elif frequency.known and frequency.path[-1] is Level.LAYER and _describes_batch(read.source, view, file):
            reason = f"`{source}` depends only on arguments that all layers share"
            action = f"compute `{source}` once above the layers and pass the number down"
        else:
            return
        yield Candidate(
            node=node,
            message=f"`{short(node)}` waits {often(frequency)} for a value that does not change".replace("  ", " "),
            action=action,
            confidence=sureness(view, node, frequency, read.value),
            frequency=frequency,
            why=(reason, *reasons(read.value, read.source), *frequency_reason(frequency)),
            data=loop,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.hoist import hoist

        assert isinstance(candidate.node, ast.expr)
        edits = hoist(candidate.node, candidate.data, definition) if isinstance(candidate.data, ast.AST) else None
        if edits is None:
            return None
        return Fix(
            title="read it once before the loop",
            safety=Safety.UNSAFE,
            edits=edits,
            effects=(Effect.TIMING,),
            requires=("the loop runs at least once, or the read may be made in vain",),
        )


def _invariant_loop(source: ast.expr, view: FunctionView) -> ast.AST | None:
    """The outermost loop around the read in which its source cannot change; None where the innermost may write it."""
    names = _sources(source)
    if not names:
        return None
    found: ast.AST | None = None
    for loop in view.loops(source):
        if names & view.written_in(loop):
            break
        if isinstance(loop, ast.comprehension):
            continue
        if view.loop_kind(loop) in _LOOPS:
            found = loop
    return found


_PURE = frozenset({
    "max", "min", "sum", "mean", "amax", "amin", "numel", "size", "long", "int", "float", "diff", "view", "reshape",
    "squeeze", "unsqueeze", "flatten", "any", "all", "argmax", "argmin", "norm", "abs", "prod", "cumsum", "detach",
    "to",
})  # fmt: skip


def _sources(node: ast.expr) -> frozenset[str]:
    """The local names and ``self.x`` an expression is computed from; empty where it calls what may not be pure."""
    found: set[str] = set()
    stack: list[ast.AST] = [node]
    while stack:
        part = stack.pop()
        if isinstance(part, ast.Attribute):
            if isinstance(part.value, ast.Name) and part.value.id == "self":
                found.add(f"self.{part.attr}")
            else:
                stack.append(part.value)
        elif isinstance(part, ast.Name):
            found.add(part.id)
        elif isinstance(part, ast.Call):
            if not isinstance(part.func, ast.Attribute) or part.func.attr not in _PURE:
                return frozenset()
            stack += [part.func.value, *part.args, *(k.value for k in part.keywords)]
        elif isinstance(part, ast.expr | ast.Slice):
            stack += [child for child in ast.iter_child_nodes(part) if isinstance(child, ast.expr)]
    return frozenset(found)


def _describes_batch(source: ast.expr, view: FunctionView, file: FileView) -> bool:
    """Whether the source is computed from parameters that all layers get alike, by their names or as the calls show,
    and from nothing else."""
    if isinstance(view.node, ast.Module | ast.Lambda) or view.loops(source):
        return False
    arguments = view.node.args
    parameters = {a.arg for a in [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]}
    names = _sources(source)
    seen: set[str] = set()
    others: set[str] = set()
    stack = sorted(names)
    while stack:
        name = stack.pop()
        if name in seen:
            continue
        seen.add(name)
        bound = view.assignments(name)
        if bound:
            if name in parameters and not _SAME_FOR_ALL_LAYERS.fullmatch(name):
                others.add(name)  # what it was made of is the layer's own
            for statement in bound:
                if not isinstance(statement, ast.Assign):
                    return False
                inner = _sources(statement.value)
                if not inner:
                    return False
                stack.extend(inner)
        elif name == "torch":
            continue
        elif name not in parameters:
            return False
        elif not _SAME_FOR_ALL_LAYERS.fullmatch(name):
            others.add(name)
    return bool(names) and (not others or alike_in_layers(others, view, file))


def _line(loop: ast.AST) -> int:
    return getattr(loop, "lineno", 0)
