"""AWP101 device-read."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    assigned_name,
    frequency_reason,
    lower,
    often,
    reasons,
    short,
    sureness,
)
from awp_lint.rules.sync.reads import (
    READ_NAMES,
    Read,
    counted_from,
    device_read,
    for_host_library,
    is_token_read,
    iterated_from,
    read_frequency,
    serves_int_contract,
    uploaded_from,
)

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class DeviceRead(Rule):
    """``.item() .tolist() .cpu() .numpy() .to("cpu") int() float()`` of a device tensor on a hot path."""

    id = "AWP101"
    name = "device-read"
    root_cause = RootCause.RUNTIME
    cost_us = 60.0
    event = Event.WAIT
    mark = MarkKind.CALL
    words = (b".item", b".tolist", b".cpu", b".numpy", b'"cpu"', b"'cpu'", b"int(", b"float(")
    nodes = (ast.Call,)
    calls = READ_NAMES
    repeated = True
    doubted = True

    summary = "a device tensor is read by the host on a hot path"
    what = """
        `.item()`, `.tolist()`, `.cpu()`, `.numpy()`, `.to("cpu")`, `int()` or `float()` of a tensor that lives on the
        accelerator, in code that runs for every step, token, layer or item.
        """
    why = """
        The host queues device work and runs ahead of it. A read stops the host until everything queued before it has
        finished; then the device idles until the host has queued something new. What is lost is that idle time, once a
        read, and a region with a read cannot be captured as a CUDA graph.
        """
    fine = """
        - The one read of the picked token that a decode step needs to stop, stream or append in Python.
        - A value that goes to a callee which demands a Python number (`max_seqlen` of a variable-length attention
          kernel, split sizes), unless the same function made the tensor from a list that the host has.
        - Whole tensors for a library that works on the host (SciPy, scikit-learn, OpenCV) in the same function.
        - Tensors that live on the host already: after `.cpu()`, from NumPy, all-reduced over a CPU process group.
        - Error paths, asserts, debug output, timing code, tests, training; fallback branches are shown at low
          confidence only.
        """
    safety = """
        Unsafe: several reads of elements become one `.tolist()` before the loop or above the first read; a sum of reads
        in a loop is kept on the device and read once behind it. That holds where the tensor has one dimension, which
        the fix says when the code does not show it. Rows that a loop reads one by one are cut from one copy of the
        whole tensor, of which they are views then. Other reads get a recommendation: keep the computation on the device
        (`torch.where`, a tensor index).
        """
    references = (
        "huggingface/diffusers#13461 per-step `item()` in a pipeline",
        "huggingface/transformers#39870 reads in the layers of a vision tower",
        "huggingface/transformers#46693 where removing a read that a kernel demands backfired",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#asynchronous-execution",
    )
    bad = """
        import torch

        @torch.no_grad()
        def denoise(model: torch.nn.Module, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
            timesteps = timesteps.to("cuda")
            for t in timesteps:
                weight = 0.0 if t.item() > 900 else 1.0
                latents = latents - weight * model(latents, t)
            return latents
        """
    good = """
        import torch

        @torch.no_grad()
        def denoise(model: torch.nn.Module, latents: torch.Tensor, timesteps: torch.Tensor) -> torch.Tensor:
            steps = timesteps.tolist()
            timesteps = timesteps.to("cuda")
            for t, step in zip(timesteps, steps):
                weight = 0.0 if step > 900 else 1.0
                latents = latents - weight * model(latents, t)
            return latents
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        read = device_read(node, view)
        if read is None:
            return
        frequency = read_frequency(view, read.source)
        if frequency is None:
            return
        confidence = sureness(view, node, frequency, read.value)
        demanded = serves_int_contract(read, view) and uploaded_from(read, view) is None
        if is_token_read(read, view) or demanded or for_host_library(read, view):
            confidence = lower(confidence, Confidence.LOW)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` waits for the device {often(frequency)}".rstrip(),
            action=_action(read, view),
            confidence=confidence,
            frequency=frequency,
            why=(*reasons(read.value, read.source), *frequency_reason(frequency)),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.sync.hostlists import one_read
        from awp_lint.rules.sync.masks import host_index
        from awp_lint.rules.sync.onhost import on_host
        from awp_lint.rules.sync.rowreads import whole_rows
        from awp_lint.rules.sync.sums import read_after_loop

        node = candidate.node
        assert isinstance(node, ast.expr)
        return (
            one_read(node, definition)
            or host_index(node, definition)
            or on_host(node, definition)
            or read_after_loop(node, definition)
            or whole_rows(node, definition)
        )


def _action(read: Read, view: FunctionView) -> str:
    source = iterated_from(view, read.source)
    if source is not None:
        return f"read all of `{short(source, 40)}` with one `.tolist()` before the loop"
    data = uploaded_from(read, view)
    if data is not None:
        return f"work it out from `{short(data, 40)}`, which the host has"
    loops = view.loops(read.call)
    kinds = {view.loop_kind(loop) for loop in loops}
    if kinds & {LoopKind.BATCH, LoopKind.ELEMENTS, LoopKind.EXPERTS}:
        return f"collect `{short(read.source, 40)}` on the device and read it once after the loop"
    source = counted_from(view, read.source)
    if source is not None:
        return f"read all of `{short(source, 40)}` with one `.tolist()` before the loop"
    name = assigned_name(view, read.call)
    if name is not None and _only_compared(name, view):
        return f"compare on the device (`torch.where`) or decide `{name}` once outside the hot path"
    return f"keep `{short(read.source, 40)}` on the device, or read it once outside the hot path"


def _only_compared(name: str, view: FunctionView) -> bool:
    uses = view.uses(name)
    return bool(uses) and all(isinstance(view.parent(use), ast.Compare) for use in uses)
