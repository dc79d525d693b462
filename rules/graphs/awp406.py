"""AWP406 capture-unsafe."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.values import Certainty
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import IDLE, frequency_reason, lower, reasons
from awp_lint.rules.graphs.compiled import capture_block, captured_code
from awp_lint.rules.graphs.hostwork import HostWork, Want, host_work

_ACTIONS = {
    Want.READ: "read after the replay",
    Want.TRUTH: "select with `torch.where`, or decide before the capture",
    Want.SIZE: "keep the shape (`torch.where`, a product with the mask)",
    Want.WAIT: "wait after the replay",
    Want.UPLOAD: "copy into a static buffer before the replay",
}


class CaptureUnsafe(Rule):
    """Host work inside a CUDA graph capture."""

    id = "AWP406"
    name = "capture-unsafe"
    root_cause = RootCause.RUNTIME
    confidence = Confidence.HIGH
    cost_us = 5000.0
    event = Event.NONE
    words = (b"graph",)
    nodes = (ast.Call, ast.If, ast.While, ast.IfExp, ast.Subscript)
    anywhere = True
    over = ("AWP101", "AWP102", "AWP103", "AWP104", "AWP105", "AWP106", "AWP107", "AWP108", "AWP109", "AWP111",
            "AWP601", "AWP602", "AWP603", "AWP604")  # fmt: skip

    summary = "a CUDA graph is captured over code that waits for the device or copies from the host"
    what = """
        Inside `with torch.cuda.graph(...)`, or in a function of the same file that is called there: a read of a device
        value, a branch on one, an index whose size depends on data, a synchronisation, an upload of host data.
        """
    why = """
        A stream that is being captured cannot be waited for: the capture fails, and code that catches the failure falls
        back to launching every kernel. What a pageable copy brought, or a Python branch chose, is the same for ever
        after, whatever the host has meanwhile.
        """
    fine = """
        - Reads of tensors that live on the host.
        - Memory allocated inside a capture: it comes from the graph's own pool.
        - Callees in other files are not followed.
        """
    safety = "A recommendation only: the value has to move out of the captured code."
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#cuda-graphs",
        "https://docs.pytorch.org/docs/stable/generated/torch.cuda.graph.html",
    )
    bad = """
        import torch

        class Runner:
            def __init__(self, model: torch.nn.Module) -> None:
                self.model = model.to("cuda")
                self.x = torch.zeros(1, 16, device="cuda")
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.y = self.model(self.x)
                    self.best = self.y.argmax(-1).item()
        """
    good = """
        import torch

        class Runner:
            def __init__(self, model: torch.nn.Module) -> None:
                self.model = model.to("cuda")
                self.x = torch.zeros(1, 16, device="cuda")
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph):
                    self.y = self.model(self.x)
                    self.best = self.y.argmax(-1)
        """

    def concerns(self, view: FunctionView, file: FileView) -> bool:
        return bool(view.nodes(ast.With)) or captured_code(view, file) is not None

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        block = capture_block(node, view)
        line = block.lineno if block is not None else captured_code(view, file)
        if line is None or _only_outside(node, view):
            return
        for work in host_work(node, view):
            if work.want not in _ACTIONS or view.regions(work.node) & IDLE:
                continue
            frequency = view.frequency(work.node)
            confidence = _confidence(work)
            if block is None:  # the same function may also be called outside the capture
                confidence = lower(confidence, Confidence.MEDIUM)
            yield Candidate(
                node=work.node,
                message=f"{work.text()} while a CUDA graph is captured (line {line})",
                action=_ACTIONS[work.want],
                confidence=lower(self.confidence, confidence),
                frequency=frequency,
                why=(
                    *(reasons(work.value, work.node) if work.value is not None else ()),
                    *frequency_reason(frequency),
                ),
            )


def _confidence(work: HostWork) -> Confidence:
    if work.value is None:
        return Confidence.HIGH
    if not work.value.on_device:
        return Confidence.LOW
    sure = {Certainty.PROVEN: Confidence.HIGH, Certainty.ASSUMED: Confidence.MEDIUM}
    return sure.get(work.value.certainty, Confidence.LOW)


def _only_outside(node: ast.AST, view: FunctionView) -> bool:
    """Whether a test of the stream's state keeps the node out of captures."""
    child, parent = node, view.parent(node)
    while parent is not None:
        if isinstance(parent, ast.If | ast.IfExp) and child is not parent.test and "captur" in ast.unparse(parent.test):
            return True
        child, parent = parent, view.parent(parent)
    return False
