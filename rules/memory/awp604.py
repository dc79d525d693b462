"""AWP604 host-round-trip."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    ancestors,
    argument,
    assigned_name,
    frequency_reason,
    hot_frequency,
    lower,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.memory.factories import DATA, is_host_device, move
from awp_lint.rules.sync.reads import READ_NAMES, device_read

_HOPS = 5
#: Libraries whose functions have no counterpart on the device.
_HOST_LIBRARIES = ("scipy.", "sklearn.", "cv2.", "skimage.", "fastcluster.", "networkx.", "numba.", "PIL.", "librosa.")


class HostRoundTrip(Rule):
    """A device tensor taken to the host, worked on there and taken back."""

    id = "AWP604"
    name = "host-round-trip"
    root_cause = RootCause.MEMORY
    confidence = Confidence.LOW
    cost_us = 300.0
    event = Event.COPY
    words = (b".cpu", b".numpy", b".tolist", b'"cpu"', b"'cpu'")
    nodes = (ast.Call,)
    calls = READ_NAMES
    repeated = True
    doubted = True
    over = ("AWP101", "AWP601", "AWP603")

    summary = "a device tensor makes a round trip over the host"
    what = """
        `.cpu()`, `.numpy()`, `.tolist()` or `.to("cpu")` of a device tensor whose value, worked on by NumPy or on the
        CPU, goes back to the device in the same function, in code that runs for every step, token, layer or item.
        """
    why = """
        Two copies and at least one wait where a few small kernels would do; the device idles from the first copy until
        the second has arrived and new work has been queued behind it.
        """
    fine = """
        - All of it is shown at low confidence only: readers called one in four of its findings true, and none of ten in
          packages that the tool had never seen. What makes the detour mostly wants the host in between.
        - Work that has no device form (SciPy, scikit-learn, OpenCV and the like: low confidence), once a request.
        - Fallbacks for devices that lack an operator.
        """
    safety = """
        No automatic rewrite: use the torch counterpart of what is done on the host.
        No diff, since NumPy's types and rounding differ, and other code may hold the array.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
        "sgl-project/sglang#14956 lengths moved to the device and read back in each batch",
    )
    bad = """
        import numpy as np
        import torch

        class Smoother(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    values = hidden_states.cpu().numpy()
                    values = np.clip(values, -3.0, 3.0)
                    hidden_states = layer(torch.from_numpy(values).to("cuda"))
                return hidden_states
        """
    good = """
        import torch

        class Smoother(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = layer(hidden_states.clamp(-3.0, 3.0))
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        read = device_read(node, view)
        if read is None or read.how in ("int", "float", "complex"):
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        back = _back(node, view, _HOPS)
        if back is None:
            return
        source = short(read.source, 40)
        confidence = sureness(view, node, frequency, read.value)
        if read.how == "item" or _needs_host(node, back, view):
            confidence = Confidence.LOW if confidence is not Confidence.LOW else confidence
        yield Candidate(
            node=node,
            message=f"`{source}` goes to the host and back {often(frequency)}".rstrip(),
            action=f"do on the device what lines {node.lineno}–{back.lineno} do on the host",
            confidence=lower(self.confidence, confidence),
            frequency=frequency,
            why=(
                f"what `{short(node, 40)}` brings to the host goes back in line {back.lineno}: `{short(back, 50)}`",
                *reasons(read.value, read.source),
                *frequency_reason(frequency),
            ),
            covers=(back, *(n for n in ast.walk(back) if isinstance(n, ast.Call)), *_chain(node, view)),
        )


def _needs_host(node: ast.Call, back: ast.Call, view: FunctionView) -> bool:
    """Whether a library that has no device form works on what lies between the two copies."""
    return any(
        isinstance(call, ast.Call)
        and node.lineno <= call.lineno <= back.lineno
        and (view.qualified(call.func) or "").startswith(_HOST_LIBRARIES)
        for call in view.nodes(ast.Call)
    )


def _chain(node: ast.AST, view: FunctionView) -> Iterator[ast.AST]:
    for parent in ancestors(view, node):
        if not isinstance(parent, ast.Attribute | ast.Call):
            return
        yield parent


def _back(node: ast.AST, view: FunctionView, hops: int) -> ast.Call | None:
    """The call that takes the value of a node to the device again."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Call) and child is not parent.func and _uploads(parent, view):
            return parent
        if isinstance(parent, ast.Call) and move(parent, view) is not None:
            return parent
        if isinstance(parent, ast.stmt):
            break
        if isinstance(parent, ast.Compare | ast.Slice | ast.IfExp):
            return None  # it decides or selects; it does not travel
        child = parent
    name = assigned_name(view, child)
    if name is None or hops == 0:
        return None
    for use in view.uses(name):
        if use.lineno <= getattr(child, "end_lineno", 0) or view.parent(use) is None:
            continue
        found = _back(use, view, hops - 1)
        if found is not None:
            return found
    return None


def _uploads(call: ast.Call, view: FunctionView) -> bool:
    dotted = view.qualified(call.func) or ""
    name = dotted.rpartition(".")[2]
    device = argument(call, None, "device")
    return dotted == f"torch.{name}" and name in DATA and device is not None and not is_host_device(device, view)
