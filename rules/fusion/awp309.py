"""AWP309 allocation-per-step."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    callee,
    frequency_reason,
    loop_body,
    lower,
    names_in,
    often,
    reasons,
    served_frequency,
    short,
    sureness,
)

_JOINS = frozenset({"cat", "concat", "concatenate", "hstack", "vstack", "stack", "pad"})
_LOOPS = (LoopKind.TOKENS, LoopKind.STEPS, LoopKind.BATCH, LoopKind.ELEMENTS, LoopKind.LAYERS, LoopKind.UNKNOWN)


@dataclass(frozen=True, slots=True)
class _Growth:
    """A name that grows by being joined with itself (``items`` None), or a list that is joined anew every pass."""

    name: str
    items: str | None = None


class AllocationPerStep(Rule):
    """An output that grows by a copy of all of it in every pass of a loop."""

    id = "AWP309"
    name = "allocation-per-step"
    root_cause = RootCause.MEMORY
    confidence = Confidence.LOW
    cost_us = 12.0
    event = Event.COPY
    words = (b"cat(", b"concat", b"stack(", b"pad(")
    nodes = (ast.Call,)
    calls = frozenset(_JOINS)
    repeated = True
    doubted = True

    summary = "an output grows by copying all of it at every step"
    what = """
        `x = torch.cat([x, new])` in a loop, its spellings with `hstack`, `vstack`, `F.pad` and attributes, and
        `torch.cat(parts)` or `torch.stack(parts)` inside the loop that fills `parts`.
        """
    why = """
        Every pass allocates a new tensor and copies everything so far, so n steps copy n²/2 rows; the changing shape
        keeps the loop from being captured as a CUDA graph and makes compiled code recompile. Writing into a tensor that
        was allocated once costs one row.
        """
    fine = """
        - Pieces collected in a list and joined once after the loop.
        - A fixed number of tensors joined (`torch.cat([cond, uncond])`).
        - A window of constant length: what is joined is a slice of the old one (`torch.cat([x[:, 1:], new])`).
        - Host tensors, set-up, training.
        - Shown at low confidence only: readers of real findings turned all of them down, right and not worth a
          change as most were.
        """
    safety = """
        No automatic rewrite: allocate `torch.empty(batch, length, …)` before the loop and write the new part into its
        slice. No diff, since the largest length and who keeps the old tensor are not to be seen in the loop.
        """
    references = (
        "Lightning-AI/lit-llama#4 an output filled in place against joined, measured",
        "andimarafioti/faster-qwen3-tts#111 a growing stack in a decode loop",
    )
    bad = """
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            tokens = input_ids.to("cuda")
            cache = None
            for _ in range(max_new_tokens):
                logits, cache = model(tokens[:, -1:], cache)
                tokens = torch.cat([tokens, logits[:, -1:].argmax(-1)], dim=1)
            return tokens
        """
    good = """
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            length = input_ids.shape[1]
            tokens = torch.empty(input_ids.shape[0], length + max_new_tokens, dtype=torch.long, device="cuda")
            tokens[:, :length] = input_ids
            cache = None
            for step in range(length, length + max_new_tokens):
                logits, cache = model(tokens[:, step - 1 : step], cache)
                tokens[:, step] = logits[:, -1].argmax(-1)
            return tokens
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) not in _JOINS or not node.args:
            return
        loops = view.loops(node)
        if not loops or not (view.qualified(node.func) or "").startswith("torch."):
            return
        found = _growth(node, view)
        if found is None:
            return
        loop = _growing_loop(found, node, view)
        if loop is None or view.loop_kind(loop) not in _LOOPS:
            return
        value = view.value(node)
        if value.device is Device.HOST or value.kind not in (Kind.TENSOR, Kind.UNKNOWN):
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        level = sureness(view, node, frequency, value)
        if view.loop_kind(loop) in (LoopKind.UNKNOWN, LoopKind.LAYERS):
            level = lower(level, Confidence.LOW)
        rows = _other(node, found)
        what = f"`{found.name}` is copied whole to append `{rows}`" if found.items is None else (
            f"all of `{found.items}` is joined anew"
        )  # fmt: skip
        action = f"allocate `{found.name}` once before the loop and write `{rows}` into its slice"
        if found.items is not None:
            action = f"write each part into a tensor allocated once, or join `{found.items}` after the loop"
        yield Candidate(
            node=node,
            message=f"{what} {often(frequency)}".rstrip(),
            action=action,
            confidence=lower(self.confidence, level),
            frequency=frequency,
            why=(*reasons(value, node), *frequency_reason(frequency)),
        )


def _growth(call: ast.Call, view: FunctionView) -> _Growth | None:
    """What grows by this call, None where nothing does."""
    parent = view.parent(call)
    if callee(call) == "pad":
        source: list[ast.expr] = call.args[:1]
    elif isinstance(call.args[0], ast.List | ast.Tuple):
        source = call.args[0].elts
    elif isinstance(call.args[0], ast.Name):
        return _list_growth(call, call.args[0], view)
    else:
        return None
    if callee(call) == "stack" or (len(source) > 3 and callee(call) != "pad"):
        return None
    while isinstance(parent, ast.Attribute | ast.Call) and not isinstance(parent, ast.Assign):
        parent = view.parent(parent)
    if not isinstance(parent, ast.Assign) or len(parent.targets) != 1:
        return None
    target = parent.targets[0]
    if not isinstance(target, ast.Name | ast.Attribute):
        return None
    text = ast.unparse(target)
    own = [part for part in source if isinstance(part, ast.Name | ast.Attribute) and ast.unparse(part) == text]
    if len(own) != 1 or (len(source) < 2 and callee(call) != "pad"):
        return None
    return _Growth(text)


def _list_growth(call: ast.Call, items: ast.Name, view: FunctionView) -> _Growth | None:
    """``torch.cat(parts)`` where the same loop appends to ``parts``."""
    loops = view.loops(call)
    for loop in loops[:1]:
        filled = bound = False
        for statement in loop_body(loop):
            for part in ast.walk(statement):
                if isinstance(part, ast.Call) and callee(part) in ("append", "extend"):
                    receiver = part.func.value if isinstance(part.func, ast.Attribute) else None
                    filled = filled or (
                        isinstance(receiver, ast.Name)
                        and receiver.id == items.id
                        and (view.loops(part) or (None,))[0] is loop
                    )
                elif isinstance(part, ast.Name) and part.id == items.id and not isinstance(part.ctx, ast.Load):
                    bound = True
        if filled and not bound:
            return _Growth(items.id, items.id)
    return None


def _growing_loop(found: _Growth, call: ast.Call, view: FunctionView) -> ast.AST | None:
    """The innermost loop around the call over whose passes the tensor grows: none that starts it anew."""
    loop = view.loops(call)[0]
    if found.items is not None:
        return loop
    if isinstance(loop, ast.comprehension):
        return None
    if isinstance(loop, ast.For | ast.AsyncFor) and found.name in {ast.unparse(t) for t in ast.walk(loop.target)}:
        return None
    here = view.statement(call)
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if part is here or not isinstance(part, ast.Assign | ast.AnnAssign):
                continue
            targets = part.targets if isinstance(part, ast.Assign) else [part.target]
            texts = {ast.unparse(t) for target in targets for t in _parts(target)}
            if found.name in texts and part.value is not None and not _uses(part.value, found.name):
                return None
    return loop


def _parts(target: ast.expr) -> list[ast.expr]:
    return list(target.elts) if isinstance(target, ast.Tuple | ast.List) else [target]


def _uses(node: ast.expr, name: str) -> bool:
    return name in names_in(node) or any(
        isinstance(n, ast.Attribute) and ast.unparse(n) == name for n in ast.walk(node)
    )


def _other(call: ast.Call, found: _Growth) -> str:
    if callee(call) == "pad" or not isinstance(call.args[0], ast.List | ast.Tuple):
        return "the new part"
    other = next((part for part in call.args[0].elts if ast.unparse(part) != found.name), call)
    return short(other, 40)
