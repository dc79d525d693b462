"""AWP603 blocking-copy."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty, Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    callee,
    frequency_reason,
    hot_frequency,
    lower,
    method,
    often,
    per_item_only,
    short,
    sureness,
    whole_program,
)
from awp_lint.rules.flow import binding
from awp_lint.rules.memory.factories import DATA, RANDOM, host_origins, move
from awp_lint.rules.memory.pages import kept_once, pageable, speaks_of_pinning

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


class BlockingCopy(Rule):
    """A host tensor copied to the device so that the host waits."""

    id = "AWP603"
    name = "blocking-copy"
    root_cause = RootCause.MEMORY
    confidence = Confidence.MEDIUM
    cost_us = 50.0
    event = Event.COPY
    mark = MarkKind.CALL
    words = (b".to(", b".cuda(", b"copy_(", b".type_as(", b"] = ")
    nodes = (ast.Call, ast.Assign)
    calls = frozenset({"to", "cuda", "copy_", "type_as"})
    repeated = True
    doubted = True

    summary = "a host tensor is copied to the device from pageable memory, so the host waits"
    what = """
        `.to(device)`, `.cuda()`, `.type_as(device_tensor)` or `device_tensor.copy_(...)` of a tensor that is made on
        the host at every step, token or layer, without `non_blocking=True`, or with it but from memory that nobody
        pinned; and such a tensor assigned to a part of a device tensor (`buffer[:n] = host`).
        """
    why = """
        A copy from pageable memory holds the host until the device has done all before it and the copy is through. With
        `non_blocking=True` the driver stages it: up to about a megabyte the host goes on (10 to 70 us behind a busy
        H200, torch 2.11), from four on it waits as before, unless the source is pinned. Pinning costs 6 to 8 us itself.
        """
    fine = """
        - Copies of less than a megabyte with `non_blocking=True`, pinned or not. As sizes are seldom known, all
          unpinned ones with it are shown at low confidence.
        - Sources made with `pin_memory=True` or `.pin_memory()` and copied with `non_blocking=True`.
        - Memory of which nothing tells who allocated it: attributes of other objects, parameters, attributes of the
          object itself that no statement of the class fills with a plain factory. Shown at low confidence.
        - Copies that a test lets run once, into an attribute that the test asks about; set-up; once a request.
        - Tensors that are on the device already: `.to` then returns them as they are.
        """
    safety = """
        Unsafe: `.to` and `.cuda` of a host tensor get a pinned source and `non_blocking=True`, on machines that can
        pin; what `torch.tensor` made of Python numbers just before gets `non_blocking=True` alone. Use the project's
        own helper for pinning where it has one; pinning is refused or useless on MPS and under WSL. A tensor that turns
        out to be on the device is left as it is. What a function of the file makes of sizes alone is kept, the last
        few by size and device.
        """
    references = (
        "https://docs.pytorch.org/tutorials/intermediate/pinmem_nonblock.html",
        "vllm-project/vllm#41429 where hard-coded pinning was a problem under WSL",
        "huggingface/diffusers#13564 where pinning in a scheduler was refused",
    )
    bad = """
        import torch

        class Runner(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, lengths: list[int]) -> torch.Tensor:
                for layer in self.layers:
                    table = torch.tensor(lengths).cumsum(0)
                    hidden_states = layer(hidden_states, table.to(hidden_states.device))
                return hidden_states
        """
    good = """
        import torch

        class Runner(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor, lengths: list[int]) -> torch.Tensor:
                table = torch.tensor(lengths, pin_memory=True).cumsum(0)
                table = table.pin_memory().to(hidden_states.device, non_blocking=True)
                for layer in self.layers:
                    hidden_states = layer(hidden_states, table)
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Assign):
            source, asynchronous = _written_in(node, view), None
        else:
            assert isinstance(node, ast.Call)
            source, asynchronous = _host_source(node, view), argument(node, None, "non_blocking")
        if source is None or speaks_of_pinning(source, view):
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        wanted = isinstance(asynchronous, ast.Constant) and asynchronous.value is True
        text = short(source, 40)
        confidence = lower(self.confidence, sureness(view, node, frequency))
        sure = view.value(source).certainty
        proven = sure is Certainty.PROVEN or _worked_out_there(source, view)
        unsure = not proven or not pageable(source, view, file)
        if whole_program(frequency) and asynchronous is None:
            unsure = sure is Certainty.UNKNOWN  # its own calls give it on the host, and the host waits, pinned or not
        if unsure or wanted or per_item_only(frequency) or kept_once(node, view):
            confidence = Confidence.LOW
        how = (
            "; where it has megabytes, the host waits in spite of `non_blocking=True`"
            if wanted
            else " and the host waits"
        )
        yield Candidate(
            node=node,
            message=f"`{text}` is copied from pageable memory {often(frequency)}".rstrip() + how,
            action=f"make `{text}` on the device, or pin it and copy with `non_blocking=True`",
            confidence=confidence,
            frequency=frequency,
            why=(
                *(f"`{text}` is on the host: {r.text} (line {r.line})" for r in view.value(source).reasons[:1]),
                *frequency_reason(frequency),
            ),
            data=source,
            mark=MarkKind.STATEMENT if isinstance(node, ast.Assign) else None,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.memory.madethere import made_there
        from awp_lint.rules.memory.uploads import kept_call, sent_ahead

        if not isinstance(candidate.node, ast.Call):
            return None
        assert isinstance(candidate.data, ast.expr)
        moved = move(candidate.node, definition.view)
        if moved is not None and moved.device is not None:
            made = made_there(candidate.data, moved.device, moved, definition)
            if made is not None:
                return made
            if isinstance(candidate.data, ast.Call):
                kept = kept_call(candidate.data, moved, definition)
                if kept is not None:
                    return kept
        return sent_ahead(candidate.node, candidate.data, definition)


def _host_source(call: ast.Call, view: FunctionView) -> ast.expr | None:
    """The host tensor that a call copies to the device."""
    moved = move(call, view)
    if moved is not None:
        source = moved.made
        if moved.device is not None and view.value(moved.device).device is Device.HOST:
            return None
        value = view.value(source)
        if not value.is_tensor or value.device is not Device.HOST:
            return None
        if host_origins(source, view) & RANDOM:
            return None  # AWP602 speaks of those
        return source
    found = method(call)
    if found is None or not call.args:
        return None
    if found[1] == "type_as":
        made, like = view.value(found[0]), view.value(call.args[0])
        kept = not made.is_tensor or made.device is not Device.HOST or not like.on_device
        return None if kept or host_origins(found[0], view) & RANDOM else found[0]
    if found[1] != "copy_":
        return None
    target, source_value = view.value(found[0]), view.value(call.args[0])
    if not target.on_device or not source_value.is_tensor or source_value.device is not Device.HOST:
        return None
    return call.args[0]


def _written_in(statement: ast.Assign, view: FunctionView) -> ast.expr | None:
    """The host tensor that ``buffer[:n] = host`` copies into a device tensor; a 0-d one is filled in, not copied."""
    target = statement.targets[0]
    if not isinstance(target, ast.Subscript) or isinstance(statement.value, ast.Constant):
        return None
    value = view.value(statement.value)
    if not value.is_tensor or value.device is not Device.HOST or value.rank == 0:
        return None
    if not view.value(target.value).on_device:
        return None
    rows = _has_rows(statement.value, view)
    return statement.value if rows and not host_origins(statement.value, view) & RANDOM else None


def _worked_out_there(node: ast.expr, view: FunctionView) -> bool:
    """Whether a function of the project works something out from tensors that are all on the host."""
    made = binding(node, view)
    call = node if made is None else made[0]
    if not isinstance(call, ast.Call) or not view.targets(call):
        return False
    given = [view.value(arg) for arg in (*call.args, *(keyword.value for keyword in call.keywords))]
    tensors = [value for value in given if value.is_tensor]
    return bool(tensors) and all(v.device is Device.HOST and v.certainty is Certainty.PROVEN for v in tensors)


def _has_rows(node: ast.expr, view: FunctionView) -> bool:
    """Whether a host tensor is known to be no 0-d one."""
    if view.value(node).rank is not None or isinstance(node, ast.Name | ast.Subscript):
        return True
    data = node.args[0] if isinstance(node, ast.Call) and node.args and callee(node) in DATA else None
    return data is not None and view.value(data).kind in (Kind.SEQUENCE, Kind.NDARRAY)
