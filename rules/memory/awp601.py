"""AWP601 constant-upload."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, MarkKind, RootCause
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, Frequency, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    callee,
    converts_argument,
    frequency_reason,
    hot_frequency,
    lower,
    method,
    often,
    per_item_only,
    short,
    sureness,
)
from awp_lint.rules.memory.factories import DATA, Move, is_host_device, move
from awp_lint.rules.memory.listindex import host_index, index_words

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition


@dataclass(frozen=True, slots=True)
class _Upload:
    made: ast.Call  # torch.tensor(...)
    data: ast.expr
    device: str  # as code, for the message
    moved: Move | None = None  # where the call only makes the tensor, what moves it


class ConstantUpload(Rule):
    """Python data turned into a device tensor again and again."""

    id = "AWP601"
    name = "constant-upload"
    root_cause = RootCause.MEMORY
    cost_us = 50.0
    event = Event.COPY
    mark = MarkKind.CALL
    words = (b"tensor(", b"as_tensor(", b"from_numpy(", *index_words())
    nodes = (ast.Call, ast.Subscript)
    calls = DATA | {"to", "cuda", "new_tensor"}
    repeated = True
    doubted = True
    over = ("AWP306", "AWP603")

    summary = "Python data is copied to the device on every call"
    what = """
        `torch.tensor(data, device=...)`, `torch.tensor(data).to(device)`, `x.new_tensor(data)` and the like for
        numbers, lists or NumPy arrays, in code that runs for every step, token, layer or item; and an index of a device
        tensor that is a Python list, an array or a host tensor (`scores[i, banned_tokens]`), which indexing copies in
        the same way.
        """
    why = """
        The data is packed on the host and copied from pageable memory, which makes the host wait for the copy; a
        constant is the same every time.
        """
    fine = """
        - Set-up, once a request.
        - Values that change at every step and that the device has to get: one pinned buffer and a `non_blocking` copy
          serve those; shown at low confidence where many values change at once.
        - `torch.full((), x, device=...)`: fills on the device, copies nothing.
        """
    safety = """
        Unsafe: a number is filled on the device (`torch.full((), x, device=device)`), a literal is made once for each
        device by a small function with a cache, which holds where nobody writes into the tensor; likewise a constant of
        the module (`MEAN`). Other numbers are made on the host and copied with `non_blocking=True`: as few as these are
        taken aside by the driver, and to pin them first takes longer than the copy. What is no call of `torch.tensor`
        gets a recommendation.
        """
    references = (
        "huggingface/transformers#20061 a constant made on the device",
        "huggingface/diffusers#13406 a table copied to the device in every forward",
        "https://docs.pytorch.org/docs/stable/notes/cuda.html#use-pinned-memory-buffers",
    )
    bad = """
        import torch

        class Norms(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    scale = torch.tensor([0.5, 1.0, 2.0], device=hidden_states.device)
                    hidden_states = layer(hidden_states) * scale.mean()
                return hidden_states
        """
    good = """
        import torch

        class Norms(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers
                self.register_buffer("scale", torch.tensor([0.5, 1.0, 2.0]), persistent=False)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = layer(hidden_states) * self.scale.mean()
                return hidden_states
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.Subscript):
            yield from _by_index(node, view)
            return
        assert isinstance(node, ast.Call)
        upload = _upload(node, view)
        if upload is None:
            return
        frequency = hot_frequency(view, node)
        if frequency is None:
            return
        data, kind = short(upload.data, 40), view.value(upload.data)
        constant = kind.constant or _literal(upload.data)
        if constant:
            action = f"keep `{data}` in a buffer on the device"
        elif kind.kind is Kind.SCALAR:
            action = (
                f"use `{data}` as a number, or fill on the device: `torch.full((), {data}, device={upload.device})`"
            )
        else:
            action = f"keep `{data}` in a buffer, or copy it with `non_blocking=True`"
        yield Candidate(
            node=node,
            message=f"`{data}` is copied to the device {often(frequency)} and the host waits".replace("  ", " "),
            action=action,
            confidence=_confidence(view, node, frequency, constant or kind.kind is Kind.SCALAR),
            frequency=frequency,
            why=(
                f"`{data}` is {'a constant' if constant else 'Python data'} on the host",
                *frequency_reason(frequency),
            ),
            covers=(upload.made,),
            data=upload,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.memory.uploads import filled_there, kept_constant, uploaded_ahead

        upload = candidate.data
        if isinstance(candidate.node, ast.Subscript) and isinstance(upload, ast.expr):
            from awp_lint.rules.memory.madethere import made_there

            return made_there(upload, candidate.node.value, None, definition)
        if not isinstance(upload, _Upload):
            return None
        if callee(upload.made) == "new_tensor" or "cuda" in ast.unparse(upload.made.func):
            return None
        filled = filled_there(upload.made, upload.data, upload.moved, definition)
        if filled is not None:
            return filled
        if _literal(upload.data) or _named_constant(upload.data, definition.view):
            return kept_constant(upload.made, upload.moved, definition)
        return uploaded_ahead(upload.made, upload.moved, definition)


def _by_index(node: ast.Subscript, view: FunctionView) -> Iterator[Candidate]:
    """An index from the host; of those of one statement the first."""
    index = host_index(node, view)
    if index is None:
        return
    frequency = hot_frequency(view, node)
    if frequency is None or _indexed_before(node, index, view):
        return
    data, name = short(index, 40), short(node.value, 30)
    action = f"keep `{data}` on the device"
    if view.loops(node):
        action = "collect the indices of all rows and copy them once, from pinned memory with `non_blocking=True`"
    level = Confidence.LOW if per_item_only(frequency) else sureness(view, node, frequency, view.value(node.value))
    yield Candidate(
        node=node,
        message=f"indexing `{name}` with `{data}`, host data, copies it to the device {often(frequency)}".rstrip(),
        action=action,
        confidence=lower(level, Confidence.MEDIUM),
        frequency=frequency,
        why=(f"`{name}` is on the device and `{data}` is Python data", *frequency_reason(frequency)),
        data=index,
    )


def _indexed_before(node: ast.Subscript, index: ast.expr, view: FunctionView) -> bool:
    """Whether an earlier subscript of the statement has the same index."""
    code = ast.unparse(index)
    for part in ast.walk(view.statement(node)):
        if part is node:
            return False
        if isinstance(part, ast.Subscript) and view.parent(part) is not None:
            other = host_index(part, view)
            if other is not None and ast.unparse(other) == code:
                return True
    return False


def _confidence(view: FunctionView, node: ast.Call, frequency: Frequency, sure: bool) -> Confidence:
    if per_item_only(frequency) or converts_argument(view, node):
        return Confidence.LOW
    result = view.value(node)
    level = sureness(view, node, frequency, result) if result.on_device else sureness(view, node, frequency)
    return lower(level, Confidence.MEDIUM) if sure or result.on_device else Confidence.LOW


def _upload(call: ast.Call, view: FunctionView) -> _Upload | None:
    """A call that ends with Python data on the device."""
    there = _made_there(call, view)
    if there is not None:
        return there
    if data := _packed(call, view):
        device = argument(call, None, "device")
        if device is None or is_host_device(device, view) or view.value(call).on_host:
            return None
        return _Upload(call, data, short(device, 40))
    found = method(call)
    moved = move(call, view) if found is not None and isinstance(found[0], ast.Call) else None
    if moved is None or not isinstance(moved.made, ast.Call):
        return None
    data = _packed(moved.made, view)
    if data is None or argument(moved.made, None, "device") is not None:
        return None
    ahead = argument(call, None, "non_blocking")
    if ahead is not None and not (isinstance(ahead, ast.Constant) and ahead.value is False):
        return None  # numbers are few: the host does not wait, pinned or not
    device_text = f"{short(moved.like, 30)}.device" if moved.like is not None else '"cuda"'
    shown = short(moved.device, 40) if moved.device is not None else device_text
    return _Upload(moved.made, data, shown, moved)


def _made_there(call: ast.Call, view: FunctionView) -> _Upload | None:
    """``x.new_tensor(data)`` of a device tensor, ``torch.cuda.LongTensor(data)``."""
    if len(call.args) != 1 or call.keywords or not isinstance(call.func, ast.Attribute):
        return None
    if call.func.attr != "new_tensor" and call.func.attr not in DATA:
        return None
    data, dotted = call.args[0], view.qualified(call.func) or ""
    value = view.value(data)
    if call.func.attr == "new_tensor" and view.value(call.func.value).on_device:
        known = value.kind in (Kind.SEQUENCE, Kind.SCALAR, Kind.NDARRAY)
    else:
        known = dotted.startswith("torch.cuda.") and call.func.attr in DATA and value.kind is Kind.SEQUENCE
    if not known or (value.element is not None and value.element.is_tensor):
        return None
    return _Upload(call, data, f"{short(call.func.value, 30)}.device")


def _packed(call: ast.Call, view: FunctionView) -> ast.expr | None:
    """The Python data of ``torch.tensor(data)``; None for other calls and for tensors as data."""
    if isinstance(call.func, ast.Attribute) and call.func.attr not in DATA:
        return None
    dotted = view.qualified(call.func) or ""
    name = dotted.rpartition(".")[2]
    if dotted != f"torch.{name}" or name not in DATA or not call.args:
        return None
    data = call.args[0]
    if isinstance(data, ast.List | ast.Tuple) and not data.elts:
        return None  # nothing to copy
    value = view.value(data)
    if value.is_tensor or (value.kind is Kind.SEQUENCE and value.element is not None and value.element.is_tensor):
        return None
    if value.kind is Kind.UNKNOWN and not _literal(data):
        return None
    return data


def _named_constant(node: ast.expr, view: FunctionView) -> bool:
    """A constant of the module, or one that it imports, by its name."""
    if not isinstance(node, ast.Name) or not node.id.isupper() or view.assignments(node.id):
        return False
    arguments = getattr(view.node, "args", None)
    return arguments is None or node.id not in {part.arg for part in ast.walk(arguments) if isinstance(part, ast.arg)}


def _literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except (ValueError, TypeError, SyntaxError, RecursionError):
        return False
    return True
