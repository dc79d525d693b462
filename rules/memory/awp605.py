"""AWP605 cache-flush."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level, LoopKind, Region
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    IDLE,
    ancestors,
    callee,
    frequency_reason,
    lines_of,
    lower,
    often,
    served_frequency,
    short,
    sureness,
)

_STEP = re.compile(r"_?train(ing)?_(step|batch|one_step)")
#: Switches for those who are short of memory.
_SHORT = re.compile(
    r"(sav\w*|low|limit\w*|reduc\w*|optimi[sz]e)_?(v?ram|mem(ory)?)|mem(ory)?_?(efficient|saving)|offload",
    re.IGNORECASE,
)
#: A comment, or what lets go of a value, above a flush.
_ABOVE = re.compile(r"\s*(#|del\b|.*=[\s,None]*$)")
#: Training that generates samples between its steps: what it flushes lies between models that take turns.
_ALTERNATES = re.compile(r"(^|[/_])(grpo|ppo|rlhf|rloo|online_dpo)(_|/|\.py$)")
_PEAK = re.compile(r"\bpeak memory|\bsave (\w+ )*(memory|vram)|\bout of memory|\bOOM\b|\bfragment", re.IGNORECASE)
_FLUSHES = {
    "torch.cuda.empty_cache": "gives all cached memory back and waits for the device",
    "torch.mps.empty_cache": "gives all cached memory back and waits for the device",
    "torch.xpu.empty_cache": "gives all cached memory back and waits for the device",
    "torch.cuda.ipc_collect": "looks through all shared memory",
    "gc.collect": "walks every Python object",
}


class CacheFlush(Rule):
    """Memory given back on a hot path, to be allocated again at once."""

    id = "AWP605"
    name = "cache-flush"
    root_cause = RootCause.MEMORY
    cost_us = 5000.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"empty_cache", b"gc.collect", b"ipc_collect", b"import collect")
    nodes = (ast.Call,)
    calls = frozenset({"empty_cache", "collect", "ipc_collect"})
    anywhere = True

    summary = "the allocator's cache is flushed, or the garbage collector run, on a hot path"
    what = """
        `torch.cuda.empty_cache()`, `ipc_collect()` or `gc.collect()` in code that runs for every step, token, layer,
        item or request, or unconditionally in every step of a training loop.
        """
    why = """
        The next allocations go to the driver again, which costs hundreds of microseconds each and waits for the device;
        a full collection walks every object of the process, milliseconds in a server.
        """
    fine = """
        - After a model has been unloaded or offloaded, in error handlers for out-of-memory, in set-up and tests; in
          training between epochs or behind an option. In training that generates samples between its steps, where
          several models take turns: low confidence.
        - Behind a switch for those who are short of memory (`if low_vram:`), or below a comment that says what it is
          for: peak memory, fragmentation, running out of it. Flush every so many requests only.
        """
    safety = """
        A recommendation only: people put it there against out-of-memory errors. Try `expandable_segments:True` in
        `PYTORCH_CUDA_ALLOC_CONF` instead.
        """
    references = (
        "huggingface/transformers#31530 where a flush at every step was reported as a slow-down",
        "huggingface/transformers#31546 the same as an option every so many steps",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#memory-management",
    )
    bad = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module) -> None:
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step)
                    torch.cuda.empty_cache()
                return latents
        """
    good = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module) -> None:
                self.unet = unet

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    latents = self.unet(latents, step)
                return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) not in ("empty_cache", "collect", "ipc_collect"):
            return
        effect = _FLUSHES.get(view.qualified(node.func) or "")
        if effect is None or view.regions(node) & Region.FALLBACK:
            return
        frequency = served_frequency(view, node)
        if frequency is not None:
            confidence = sureness(view, node, frequency)
            seldom = not frequency.hot and Level.LOOP not in frequency.path
            if seldom or _asked_for(node, view, file) or _ALTERNATES.search(view.path):
                confidence = lower(confidence, Confidence.LOW)
        elif effect.startswith("gives") and _every_training_step(node, view):
            alternating = _ALTERNATES.search(view.path) is not None
            frequency = Frequency((Level.STEP,), Certainty.ASSUMED)
            confidence = Confidence.LOW if alternating else Confidence.MEDIUM
        else:
            return
        yield Candidate(
            node=node,
            message=f"`{short(node)}` {effect} {often(frequency)}".rstrip(),
            action="delete it, or flush every few hundred requests only",
            confidence=confidence,
            frequency=frequency,
            why=frequency_reason(frequency),
        )


def _asked_for(node: ast.Call, view: FunctionView, file: FileView) -> bool:
    """Whether a switch for those who are short of memory has to be on: ``if save_mem:``; or a comment says what for."""
    child: ast.AST = node
    for parent in ancestors(view, node):
        if (
            isinstance(parent, ast.If | ast.IfExp)
            and child is not parent.test
            and _SHORT.search(ast.unparse(parent.test))
        ):
            return True
        child = parent
    statement = view.statement(node)
    lines = lines_of(file.text)
    first = statement.lineno - 1
    while first > 0 and _ABOVE.match(lines[first - 1]):
        first -= 1
    said = "\n".join(lines[first : statement.lineno])
    return any(_PEAK.search(comment) for comment in re.findall(r"#(.*)", said))


def _every_training_step(node: ast.Call, view: FunctionView) -> bool:
    """Whether a flush stands unconditionally in the function of one training step, or in its loop over batches."""
    if view.regions(node) & IDLE != Region.TRAINING:
        return False
    loops = [loop for loop in view.loops(node) if isinstance(loop, ast.For)]
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If | ast.Try | ast.ExceptHandler | ast.IfExp | ast.BoolOp):
            return False
        if parent in loops and view.loop_kind(parent) in (LoopKind.REQUESTS, LoopKind.BATCH, LoopKind.STEPS):
            return True
    return not loops and _STEP.fullmatch(view.qualname.rpartition(".")[2]) is not None
