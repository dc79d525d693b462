"""AWP606 move-per-call."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.values import Certainty, Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView, Level
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import ancestors, frequency_reason, often, served_frequency, short, sureness
from awp_lint.rules.memory.factories import move

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_CASTS = frozenset({"half", "float", "bfloat16", "double"})
_OFFLOAD = re.compile(
    r"offload|unload|onload|swap|load|teardown|cleanup|free|setup|init|prepare|__enter__|__exit__|_apply"
)


class MovePerCall(Rule):
    """A model, or a table a model keeps, moved or cast at every call."""

    id = "AWP606"
    name = "move-per-call"
    root_cause = RootCause.MEMORY
    cost_us = 100.0
    event = Event.COPY
    mark = MarkKind.CALL
    words = (b".to(", b".cuda(", b".half(", b".float(", b".bfloat16(")
    nodes = (ast.Call,)
    calls = _CASTS | {"to", "cuda"}
    doubted = True
    over = ("AWP603", "AWP602", "AWP601")

    summary = "a model or a table it keeps is moved or cast at every call"
    what = """
        `.to(device)`, `.cuda()` or `.half()` of a model inside a request, and `.to(device)` of a table that an object
        keeps on the host (a plain attribute, no buffer), in a forward or step.
        """
    why = """
        A kept host table is copied again at every call and the host waits. Moving a model that is there already copies
        nothing but visits every parameter, milliseconds for a large one; else it copies all the weights.
        """
    fine = """
        - The result is stored back, or kept a device, so that only the first call copies.
        - Registered buffers and parameters: they move with the model.
        - A cast that nothing of the function takes back (`model.float()`), and a move behind a test of the device: only
          the first call does anything. Shown at low confidence.
        - A table copied once a request, beside all that it does: low confidence.
        - Offloading on purpose, loading, set-up, tests and training.
        """
    safety = """
        Unsafe: a table that one method alone reads is replaced by its copy on the device at the first call; types stay
        as they are, which a buffer would not grant under `model.half()`. Otherwise a recommendation: register a buffer
        (`persistent=False` keeps checkpoints as they are), or keep one copy a device; move models once at start-up.
        """
    manual = True
    references = (
        "huggingface/diffusers#13406 a rope table copied in every forward",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.Module.html#torch.nn.Module.register_buffer",
    )
    bad = """
        import torch

        class Rope(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.freqs = torch.arange(0, dim, 2) / dim

            def forward(self, positions: torch.Tensor) -> torch.Tensor:
                return torch.outer(positions, self.freqs.to(positions.device))
        """
    good = """
        import torch

        class Rope(torch.nn.Module):
            def __init__(self, dim: int) -> None:
                super().__init__()
                self.register_buffer("freqs", torch.arange(0, dim, 2) / dim, persistent=False)

            def forward(self, positions: torch.Tensor) -> torch.Tensor:
                return torch.outer(positions, self.freqs)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if not isinstance(node.func, ast.Attribute) or _OFFLOAD.search(view.qualname.rpartition(".")[2]):
            return
        receiver = node.func.value
        if not _may_last(receiver, view) or (node.func.attr not in _CASTS and move(node, view) is None):
            return
        value = view.value(receiver)
        if value.kind is Kind.MODULE:
            yield from _module(node, receiver, view, file)
        elif value.is_tensor and value.device is Device.HOST and _kept(receiver):
            yield from _table(node, receiver, view)

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.memory.uploads import kept_there

        node = candidate.node
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
        moved = move(node, definition.view)
        if moved is None or definition.view.value(node.func.value).kind is Kind.MODULE:
            return None
        return kept_there(node, node.func.value, moved, definition)


def _module(node: ast.Call, receiver: ast.expr, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    assert isinstance(node.func, ast.Attribute)
    frequency = served_frequency(view, node)
    if frequency is None:
        return
    name = short(receiver, 40)
    confidence = sureness(view, node, frequency)
    if view.value(receiver).certainty is Certainty.UNKNOWN or _finds_nothing_to_do(node, receiver, view, file):
        confidence = Confidence.LOW
    yield Candidate(
        node=node,
        message=f"the model `{name}` is moved or cast {often(frequency)}".rstrip(),
        action=f"move `{name}` once at start-up",
        confidence=confidence,
        frequency=frequency,
        why=(f"`{name}` is a model", *frequency_reason(frequency)),
    )


def _finds_nothing_to_do(node: ast.Call, receiver: ast.expr, view: FunctionView, file: FileView) -> bool:
    """Whether all calls but the first leave the model as it is: a cast that nobody takes back, a move that a test of
    the place guards."""
    assert isinstance(node.func, ast.Attribute)
    for parent in ancestors(view, node):
        if isinstance(parent, ast.If) and ".device" in ast.unparse(parent.test):
            return True
    name = ast.unparse(receiver)
    if node.func.attr not in _CASTS:
        # a part of an object stays where it is moved, unless something in the file moves it away
        away = re.finditer(rf"\b{re.escape(name)}\.(cpu\(|to\([\"']?(cpu|meta))", file.text)
        return re.match(r"self\b", name) is not None and all(_at_the_end(file.text[: found.start()]) for found in away)
    return not any(
        isinstance(call, ast.Call)
        and call is not node
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in _CASTS | {"to"}
        and ast.unparse(call.func.value) == name
        and ast.unparse(call) != ast.unparse(node)
        for call in view.nodes(ast.Call)
    )


#: What is called when an object is no longer needed.
_END = re.compile(r"(^|_)(stop|close|del|release|clean|cleanup|unload|free|shutdown|teardown|exit)(_|$)")


def _at_the_end(text: str) -> bool:
    """Whether a text ends within a function that lets go of what an object holds."""
    names = re.findall(r"^\s*(?:async )?def (\w+)", text, re.MULTILINE)
    return bool(names) and _END.search(names[-1].strip("_")) is not None


def _table(node: ast.Call, receiver: ast.expr, view: FunctionView) -> Iterator[Candidate]:
    if move(node, view) is None or _stored(node, view) or _replaced(receiver, view):
        return
    frequency = served_frequency(view, node)
    if frequency is None:
        return
    in_forward = view.qualname.endswith(".forward") and any(base.endswith(".Module") for base in view.class_bases)
    confidence = sureness(view, node, frequency)
    once = frequency.path == (Level.REQUEST,)  # beside all else that a request does
    if once or not (in_forward or frequency.hot) or view.value(receiver).certainty is Certainty.UNKNOWN:
        confidence = Confidence.LOW
    name = short(receiver, 40)
    yield Candidate(
        node=node,
        message=f"`{name}` is kept on the host and copied to the device {often(frequency)}".rstrip(),
        action=_action(receiver, name),
        confidence=confidence,
        frequency=frequency,
        why=(
            *(f"`{name}` is on the host: {r.text} (line {r.line})" for r in view.value(receiver).reasons[:1]),
            *frequency_reason(frequency),
        ),
    )


def _action(receiver: ast.expr, name: str) -> str:
    if isinstance(receiver, ast.Subscript) and not isinstance(receiver.slice, ast.Slice | ast.Tuple):
        return f"use `{name}` as it is (a 0-d host tensor serves as a number), or keep the table on the device"
    return f"register `{name}` as a buffer (`persistent=False`), or keep one copy a device"


def _kept(node: ast.expr) -> bool:
    """An attribute of an object, or a part of one."""
    while isinstance(node, ast.Subscript):
        node = node.value
    return isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "self"


def _may_last(receiver: ast.expr, view: FunctionView) -> bool:
    """Whether an expression may be what lasts: a model that is built here moves once, a result is no model."""
    if isinstance(receiver, ast.Name):
        return not view.assignments(receiver.id)
    return not isinstance(receiver, ast.Call | ast.BinOp | ast.UnaryOp | ast.Compare | ast.Constant)


def _replaced(receiver: ast.expr, view: FunctionView) -> bool:
    """Whether the function puts something else in the attribute's place: the copy, so that later calls find it."""
    name = ast.unparse(receiver)
    return any(
        isinstance(statement, ast.Assign) and any(ast.unparse(target) == name for target in statement.targets)
        for statement in view.nodes(ast.Assign)
    )


def _stored(node: ast.Call, view: FunctionView) -> bool:
    """Whether the result is kept in an attribute or a table, so that later calls find it there."""
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Assign):
            return any(isinstance(t, ast.Attribute | ast.Subscript) for t in parent.targets)
        if isinstance(parent, ast.stmt):
            return False
    return False
