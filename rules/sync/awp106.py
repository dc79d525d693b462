"""AWP106 explicit-synchronize."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Certainty, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import callee, frequency_reason, hot_frequency, lower, often, own_text, short, sureness

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_WHOLE_DEVICE = frozenset({
    "torch.cuda.synchronize", "torch.xpu.synchronize", "torch.mps.synchronize", "torch.accelerator.synchronize",
    "torch.npu.synchronize",
})  # fmt: skip
#: What a wait may be there for.
_RELIES = re.compile(
    r"non_blocking|ipc|dlpack|memcpy|nccl|capture_begin|CUDAGraph|(?<!current_)(?<!default_)[Ss]tream\("
)
#: Functions that are there to wait: what calls them relies on it.
_SAYS_SO = re.compile(r"(^|_)(synchroni[sz]e|sync|barrier|wait)(_|$)")


class ExplicitSynchronize(Rule):
    """The host waits for the whole device, a stream or an event on purpose, on a hot path."""

    id = "AWP106"
    name = "explicit-synchronize"
    root_cause = RootCause.RUNTIME
    cost_us = 200.0
    event = Event.WAIT
    mark = MarkKind.CALL
    words = (b"synchronize",)
    nodes = (ast.Call,)
    calls = frozenset({"synchronize"})
    repeated = True
    doubted = True

    summary = "the host waits for the device with synchronize() on a hot path"
    what = """
        `torch.cuda.synchronize()` and its kin, `stream.synchronize()` and `event.synchronize()`, in code that runs for
        every step, token, layer or item and measures nothing.
        """
    why = """
        The host stops until the device has worked off its queue, then the device idles until new work arrives. Work on
        one stream is ordered without it, and reads of results wait by themselves.
        """
    fine = """
        - Beside a clock, in benchmarks and tests.
        - Before the host reads a buffer that a `non_blocking` copy fills, before memory is handed to another process or
          library, around graph capture, in a function that is there to wait by its name (`_sync_after_receive`): shown
          at low confidence only, as are streams and events that come from elsewhere.
        """
    safety = """
        Unsafe: the call is deleted where the file speaks of no asynchronous copy, other stream or other process that
        may rely on it; else wait for the one event that matters.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.cuda.synchronize.html",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-streams",
    )
    bad = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module):
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step)
                    torch.cuda.synchronize()
                return latents
        """
    good = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module):
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step)
                return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "synchronize" or not isinstance(node.func, ast.Attribute):
            return
        dotted = view.qualified(node.func) or ""
        owner = view.value(node.func.value)
        if dotted not in _WHOLE_DEVICE and owner.kind is not Kind.STREAM:
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency)
        relied_on = _RELIES.search(own_text(view, file))
        if relied_on or (owner.kind is Kind.STREAM and not _own(node.func.value, view)):
            confidence = lower(confidence, Confidence.LOW)
        if frequency.certainty is Certainty.UNKNOWN or _SAYS_SO.search(view.qualname.rpartition(".")[2].lower()):
            confidence = Confidence.LOW
        what = f"`{short(node)}`"
        yield Candidate(
            node=node,
            message=f"{what} stops the host until the device has finished everything, {often(frequency)}".rstrip(", "),
            action=f"delete {what}: one stream keeps its order by itself",
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.edits import remove

        statement = definition.view.parent(candidate.node)
        if not isinstance(statement, ast.Expr) or _RELIES.search(definition.file.text):
            return None
        edit = remove(statement, definition)
        if edit is None:
            return None
        return Fix(
            title=f"delete `{short(candidate.node)}`",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.TIMING,),
            requires=("no other stream, process or library reads what was queued before it",),
        )


def _own(waited: ast.expr, view: FunctionView) -> bool:
    """Whether what is waited for is the stream in use, or an event that this function has just made."""
    if isinstance(waited, ast.Name):
        made = [s.value for s in view.assignments(waited.id) if isinstance(s, ast.Assign)]
        return len(made) == 1 and isinstance(made[0], ast.Call) and callee(made[0]) in ("Event", "current_stream")
    return isinstance(waited, ast.Call) and callee(waited) in ("current_stream", "default_stream")
