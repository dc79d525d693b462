"""AWP901 collective-per-element."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    frequency_reason,
    has_loops,
    loop_body,
    lower,
    names_in,
    often,
    served_frequency,
    short,
    sureness,
    target_names,
)
from awp_lint.rules.communication.collectives import TENSOR, collective


class CollectivePerElement(Rule):
    """One collective for each of several tensors that one could carry."""

    id = "AWP901"
    name = "collective-per-element"
    root_cause = RootCause.COMMUNICATION
    confidence = Confidence.MEDIUM
    cost_us = 40.0
    event = Event.LAUNCHES
    mark = MarkKind.LOOP
    words = (b"distributed",)
    nodes = (ast.Call,)
    calls = TENSOR

    summary = "a loop issues one collective for each tensor where one would carry them all"
    what = """
        A `torch.distributed` collective in a loop over tensors, rows or keys, on the loop's own item, where no pass
        needs the result of the one before.
        """
    why = """
        A collective has a fixed price, tens of microseconds of launch, hand-shake and ramp-up on all ranks, whatever it
        carries. A small tensor costs that and nothing else, so n of them cost n times as much as one that is n times as
        large; and the slowest rank is waited for n times.
        """
    fine = """
        - One collective a layer where the next layer needs its result (tensor parallelism).
        - Tensors so large that each fills the link by itself.
        - Set-up, training, saving of weights.
        """
    safety = """
        No automatic rewrite: pack the tensors into one buffer (`torch._utils._flatten_dense_tensors`, `torch.stack`)
        and issue one collective, or wrap the loop in a coalescing manager.
        """
    references = ("https://docs.pytorch.org/docs/stable/distributed.html",)
    bad = """
        import torch
        import torch.distributed as dist

        @torch.inference_mode()
        def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            tokens = tokens.to("cuda")
            for _ in range(max_new_tokens):
                scores, heads = model(tokens)
                for head in heads:
                    dist.all_reduce(head)
                tokens = scores.argmax(-1)
            return tokens
        """
    good = """
        import torch
        import torch.distributed as dist

        @torch.inference_mode()
        def generate(model: torch.nn.Module, tokens: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            tokens = tokens.to("cuda")
            for _ in range(max_new_tokens):
                scores, heads = model(tokens)
                packed = torch.stack(list(heads))
                dist.all_reduce(packed)
                tokens = scores.argmax(-1)
            return tokens
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return has_loops(view)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        loops = view.loops(node)
        if not loops or not node.args:
            return
        name = collective(node, view)
        loop = loops[0]
        if name not in TENSOR or not isinstance(loop, ast.For | ast.AsyncFor | ast.comprehension):
            return
        if not _on_item(node, loop) or _needs_last(node, loop):
            return
        if any(k.arg == "async_op" and isinstance(k.value, ast.Constant) and k.value.value for k in node.keywords):
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        items = short(loop.iter, 40)
        yield Candidate(
            node=loop if isinstance(loop, ast.stmt) else node,
            message=f"one `{name}` for each item of `{items}` {often(frequency)}".rstrip(),
            action=f"pack `{items}` into one tensor and issue one `{name}`",
            confidence=lower(
                self.confidence, sureness(view, node, frequency) if _counts(loop, view) else Confidence.LOW
            ),
            frequency=frequency,
            why=frequency_reason(frequency),
            mark=MarkKind.LOOP if isinstance(loop, ast.stmt) else MarkKind.STATEMENT,
            covers=(node,),
        )


def _counts(loop: ast.For | ast.AsyncFor | ast.comprehension, view: FunctionView) -> bool:
    """Whether the loop serves requests: not one that warms up or measures memory."""
    text = f"{view.qualname} {ast.unparse(loop.iter)}".lower()
    return not any(word in text for word in ("profile", "dummy", "warmup", "warm_up", "init"))


def _on_item(call: ast.Call, loop: ast.For | ast.AsyncFor | ast.comprehension) -> bool:
    """Whether the collective works on the loop's item, or on ``x[i]``."""
    targets = target_names(loop.target)
    sources = [*call.args[:2], *(k.value for k in call.keywords if k.arg in ("tensor", "input", "output_tensor"))]
    for source in sources:
        root = source
        while isinstance(root, ast.Attribute | ast.Call | ast.Subscript):
            if isinstance(root, ast.Subscript) and names_in(root.slice) & targets:
                return True
            root = root.func if isinstance(root, ast.Call) else root.value
        if isinstance(root, ast.Name) and root.id in targets:
            return True
    return False


def _needs_last(call: ast.Call, loop: ast.AST) -> bool:
    """Whether the passes do more than communicate: a model or layer runs in between."""
    for statement in loop_body(loop):
        for part in ast.walk(statement):
            if isinstance(part, ast.Call) and part is not call:
                func = part.func
                name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
                if name in ("matmul", "mm", "linear", "forward", "layer", "block", "model", "step"):
                    return True
    return False
