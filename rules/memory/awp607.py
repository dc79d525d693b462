"""AWP607 hot-copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import callee, frequency_reason, lower, often, served_frequency, short, sureness


class HotCopy(Rule):
    """A deep copy of state on a hot path."""

    id = "AWP607"
    name = "hot-copy"
    root_cause = RootCause.MEMORY
    confidence = Confidence.LOW
    cost_us = 200.0
    event = Event.HOST
    mark = MarkKind.CALL
    words = (b"deepcopy",)
    nodes = (ast.Call,)
    calls = frozenset({"deepcopy"})
    doubted = True

    summary = "state is deep-copied on a hot path"
    what = """
        `copy.deepcopy(...)` in code that runs for every request, step, token, layer or item.
        """
    why = """
        A deep copy walks the whole object graph in Python, tens of microseconds for small parameters and milliseconds
        where a cache, a grammar or tensors hang off the object; tensors are cloned one by one.
        """
    fine = """
        - Set-up, tests, training.
        - Small objects that are really changed afterwards; a run tells what it costs.
        - Shown at low confidence only: readers of real findings turned all of them down, right and not worth a
          change as most were.
        """
    safety = """
        A recommendation only: copy what is written (`copy.copy`, `dataclasses.replace`, `dict(...)`).
        """
    references = (
        "vllm-project/vllm#17731 copying request parameters, harmless until something large hung off them",
        "vllm-project/vllm#31041 the same, skipped where the object is fresh",
        "https://docs.python.org/3/library/copy.html",
    )
    bad = """
        import copy

        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module, state: dict) -> None:
                self.unet = unet
                self.state = state

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    state = copy.deepcopy(self.state)
                    latents = self.unet(latents, step, state)
                return latents
        """
    good = """
        import torch

        class Pipeline:
            def __init__(self, unet: torch.nn.Module, state: dict) -> None:
                self.unet = unet
                self.state = state

            def __call__(self, latents: torch.Tensor, num_inference_steps: int) -> torch.Tensor:
                for step in range(num_inference_steps):
                    state = dict(self.state)
                    latents = self.unet(latents, step, state)
                return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) != "deepcopy" or view.qualified(node.func) != "copy.deepcopy" or not node.args:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency)
        if not frequency.hot:
            confidence = lower(confidence, Confidence.LOW)
        copied = short(node.args[0], 40)
        yield Candidate(
            node=node,
            message=f"`{copied}` is deep-copied {often(frequency)}".rstrip(),
            action=f"copy only what is written: `copy.copy({copied})` or a new object",
            confidence=lower(self.confidence, confidence),
            frequency=frequency,
            why=frequency_reason(frequency),
        )
