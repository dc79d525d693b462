"""AWP405 weak-compile-mode."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, frequency_reason, has_loops, short
from awp_lint.rules.graphs.compiled import Compiled, compiled_callee, compiled_in

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_UNITS = {LoopKind.TOKENS: "token", LoopKind.STEPS: "step"}
_FIXED = ("mode", "options", "backend")


class WeakCompileMode(Rule):
    """A step compiled without CUDA graphs."""

    id = "AWP405"
    name = "weak-compile-mode"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.LOW
    cost_us = 500.0
    event = Event.LAUNCHES
    words = (b"compile",)
    nodes = (ast.Call,)

    summary = "a step is compiled in a mode that still launches every kernel from Python"
    what = """
        A function compiled by `torch.compile` in its default mode and called in a loop over tokens or steps.
        """
    why = """
        The default mode fuses kernels and leaves their launches to the host. Where a step is many short kernels, the
        launches are what it waits for; `mode="reduce-overhead"` records them as a CUDA graph.
        """
    fine = """
        - Steps of long kernels: launches hide behind them.
        - Steps whose sizes or numbers change (a recording for each), or that hand out tensors which are kept: outputs
          of a recording are overwritten by the next one.
        - Low confidence always: whether it pays is nothing that code shows. On some releases the graph mode was slower
          than the default; let a profile run, or an A/B run of the patch, decide.
        """
    safety = """
        Unsafe: the graph mode keeps a memory pool, and outputs are valid until the next call only
        (`torch.compiler.cudagraph_mark_step_begin()` before each step says so to the compiler).
        """
    tolerance = 16
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.compile.html",
        "https://docs.pytorch.org/docs/stable/user_guide/torch_compiler/torch.compiler_cudagraph_trees.html",
        "pytorch/pytorch#174575 where the graph mode was slower",
    )
    bad = """
        import torch

        def denoise(unet: torch.nn.Module, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
            step = torch.compile(unet)
            for t in timesteps:
                latents = latents - step(latents, t)
            return latents
        """
    good = """
        import torch

        def denoise(unet: torch.nn.Module, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
            step = torch.compile(unet, mode="reduce-overhead")
            for t in timesteps:
                latents = latents - step(latents, t)
            return latents
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return bool(compiled_in(file)) and has_loops(view)

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        loop = next((one for one in view.loops(node) if view.loop_kind(one) in _UNITS), None)
        if loop is None or view.regions(node) & IDLE:
            return
        one = compiled_callee(node, view, file)
        if "cudagraph" in file.text.lower():
            return
        if one is None or not one.known or any(option in one.options for option in _FIXED):
            return
        frequency = view.frequency(node)
        if frequency.known and not frequency.path:
            return
        unit = _UNITS[view.loop_kind(loop)]
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` is compiled and still launches its kernels one by one every {unit}",
            action='try `mode="reduce-overhead"` and let an A/B run decide',
            confidence=self.confidence,
            frequency=frequency,
            why=(f"compiled by `{one.text()}` (line {one.node.lineno})", *frequency_reason(frequency)),
            data=one,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        one = candidate.data
        if not isinstance(one, Compiled) or one.constant("dynamic") is True:
            return None
        start, end = definition.range(one.node)
        option = 'mode="reduce-overhead"'
        if not isinstance(one.node, ast.Call):
            edit = Edit(end, end, f"({option})")
        else:
            text = definition.source.text[start:end]
            inner = text[:-1].rstrip()
            if not text.endswith(")") or "#" in inner.rpartition("\n")[2]:
                return None
            comma = "" if inner.endswith(("(", ",")) else ","
            gap = "" if inner.endswith("(") else " "
            at = start + len(inner)
            edit = Edit(at, at, f"{comma}{gap}{option}")
        return Fix(
            title="compile with CUDA graphs",
            safety=Safety.UNSAFE,
            edits=(edit,),
            effects=(Effect.MEMORY, Effect.ALIASING, Effect.TIMING),
            requires=("no result of one step is read after the next one, unless it was copied",),
        )
