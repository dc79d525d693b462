"""AWP607 hot-copy."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import argument, callee, frequency_reason, lower, often, served_frequency, short, sureness

#: What a decode loop grows: as large as all that was said.
_CACHE = re.compile(r"(^|_)(past(_key_values?|_kv)?|kv|(kv_?)?cache)$")

_STEPS = frozenset((Level.STEP, Level.TOKEN))
_WITHIN = _STEPS | {Level.LAYER, Level.EXPERT}


class HotCopy(Rule):
    """A deep copy of state on a hot path."""

    id = "AWP607"
    name = "hot-copy"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
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
        - A cache of a common prefix that each prompt starts from: the model writes into it, so each needs its own.
        - Shown at low confidence but for three kinds. Readers of real findings turned the others down, right and not
          worth a change as most were. A tensor of the device, or a dictionary or list of them, in every step, token or
          layer: all of its memory is copied. A KV cache at every step or token. An object that copies itself, with a
          `memo` that keeps parts of it out of the copy, once a request or more often: somebody found these parts too
          expensive, and the rest is still walked.
        """
    safety = """
        A recommendation only: copy what is written (`copy.copy`, `dataclasses.replace`, `dict(...)`). A tensor that
        nobody writes into needs no copy; a cache that is only read ahead can be cut back to its length (`crop`).
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
        if not (_copies_itself(node, view) or _copies_memory(node.args[0], frequency, view)):
            confidence = Confidence.LOW
        copied = short(node.args[0], 40)
        yield Candidate(
            node=node,
            message=f"`{copied}` is deep-copied {often(frequency)}".rstrip(),
            action=f"copy only what is written: `copy.copy({copied})` or a new object",
            confidence=lower(self.confidence, confidence),
            frequency=frequency,
            why=frequency_reason(frequency),
        )


def _copies_memory(copied: ast.expr, frequency: Frequency, view: FunctionView) -> bool:
    """Whether tensors of the device are copied on a hot path, or a cache at every step."""
    if not (frequency.known and frequency.hot):
        return False
    value = view.value(copied)
    if value.on_device or (value.element is not None and value.element.on_device):
        return not _WITHIN.isdisjoint(frequency.path)
    name = copied.attr if isinstance(copied, ast.Attribute) else copied.id if isinstance(copied, ast.Name) else ""
    return _CACHE.search(name) is not None and not _STEPS.isdisjoint(frequency.path) and bool(view.loops(copied))


def _copies_itself(node: ast.Call, view: FunctionView) -> bool:
    """``copy.deepcopy(self, memo)``: an object to which parts belong that had to be kept out, and no shallow copy for
    those who need no more."""
    copied = node.args[0]
    if not (isinstance(copied, ast.Name) and copied.id == "self") or argument(node, 1, "memo") is None:
        return False
    if view.qualname.endswith(".__deepcopy__"):
        return False
    calls = (call for call in view.nodes(ast.Call) if isinstance(call, ast.Call))
    return not any(view.qualified(call.func) == "copy.copy" for call in calls)
