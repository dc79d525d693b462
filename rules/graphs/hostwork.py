"""What a statement wants from the host: reads, truth values, data-sized results, uploads, prints.

A compiled graph breaks there and a CUDA graph capture fails there. Only what is known to be so is given.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Device, DTypeClass, Kind, Value
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import argument, callee, host_named, maybe_device, short
from awp_lint.rules.memory.factories import DATA, host_factory, is_host_device, move
from awp_lint.rules.sync.reads import device_read


class Want(enum.Enum):
    """The kinds of work that only the host can do."""

    READ = "reads a device value"
    TRUTH = "asks for the truth of a device tensor"
    SIZE = "makes a tensor whose size depends on the data"
    WAIT = "waits for the device"
    UPLOAD = "copies from the host"
    PRINT = "prints"
    LOG = "logs"
    CLOCK = "reads a clock"


@dataclass(frozen=True, slots=True)
class HostWork:
    """One place where the host is wanted; ``value`` is the tensor it is about, if any."""

    node: ast.expr
    want: Want
    value: Value | None = None

    def text(self) -> str:
        """As a person reads it: code and what it does."""
        return f"`{short(self.node)}` {self.want.value}"


_CLOCKS = frozenset({"time.time", "time.perf_counter", "time.monotonic", "time.perf_counter_ns", "time.time_ns"})
_WAITS = frozenset({
    "torch.cuda.synchronize", "torch.cuda.current_stream.synchronize", "torch.cuda.Event.synchronize",
    "torch.cuda.Stream.synchronize", "torch.accelerator.synchronize",
})  # fmt: skip
_SIZED = frozenset({"nonzero", "masked_select", "unique", "unique_consecutive", "argwhere", "bincount"})
_LEVELS = frozenset({"debug", "info", "warning", "error", "critical", "exception", "log"})


def host_work(node: ast.AST, view: FunctionView) -> Iterator[HostWork]:
    """What one node (a call, a subscript, an ``if`` …) wants from the host."""
    if isinstance(node, ast.If | ast.While | ast.IfExp):
        for tested in _parts(node.test):
            value = view.value(tested)
            if maybe_device(value) and not host_named(tested):
                yield HostWork(tested, Want.TRUTH, value)
    elif isinstance(node, ast.Subscript):
        mask = _mask(node, view)
        if mask is not None:
            yield HostWork(node, Want.SIZE, mask)
    elif isinstance(node, ast.Call):
        found = _call(node, view)
        if found is not None:
            yield found


def _parts(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for part in test.values:
            yield from _parts(part)
    elif isinstance(test, ast.UnaryOp) and isinstance(test.op, ast.Not):
        yield from _parts(test.operand)
    elif isinstance(test, ast.Compare) and isinstance(test.ops[0], ast.Is | ast.IsNot | ast.In | ast.NotIn):
        return
    else:
        yield test


def _mask(node: ast.Subscript, view: FunctionView) -> Value | None:
    """The boolean mask of a read or of an assignment of a tensor; filling with a number needs no size."""
    base = view.value(node.value)
    if base.kind is not Kind.TENSOR or base.device is Device.HOST:
        return None
    parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    value = next((v for v in map(view.value, parts) if v.is_tensor and v.dtype is DTypeClass.BOOL), None)
    if value is None or value.rank == 0 or isinstance(node.ctx, ast.Del):
        return None
    if isinstance(node.ctx, ast.Store):
        parent = view.parent(node)
        if not isinstance(parent, ast.Assign) or not view.value(parent.value).is_tensor:
            return None
    return value


def _call(call: ast.Call, view: FunctionView) -> HostWork | None:
    name = callee(call)
    if isinstance(call.func, ast.Name) and name == "print":
        return HostWork(call, Want.PRINT)
    if isinstance(call.func, ast.Name) and name == "bool" and len(call.args) == 1:
        value = view.value(call.args[0])
        return HostWork(call, Want.TRUTH, value) if maybe_device(value) else None
    read = device_read(call, view)
    if read is not None:
        return HostWork(call, Want.READ, read.value)
    dotted = view.qualified(call.func) or ""
    if dotted in _CLOCKS:
        return HostWork(call, Want.CLOCK)
    if dotted in _WAITS or (name == "synchronize" and view.value(call.func.value).kind is Kind.STREAM
                            if isinstance(call.func, ast.Attribute) else False):  # fmt: skip
        return HostWork(call, Want.WAIT)
    if name in _LEVELS and isinstance(call.func, ast.Attribute):
        owner = call.func.value
        if dotted.startswith("logging.") or (isinstance(owner, ast.Name) and owner.id.lower() in ("logger", "log")):
            return HostWork(call, Want.LOG)
    sized = _sized(call, name, dotted, view)
    if sized is not None:
        return HostWork(call, Want.SIZE, sized)
    return HostWork(call, Want.UPLOAD) if _uploads(call, name, dotted, view) else None


def _sized(call: ast.Call, name: str, dotted: str, view: FunctionView) -> Value | None:
    if name in _SIZED or (name == "where" and len(call.args) == 1):
        source = call.args[0] if dotted.startswith("torch.") and not dotted.startswith("torch.Tensor.") else None
        if source is None and isinstance(call.func, ast.Attribute) and dotted.startswith("torch.Tensor."):
            source = call.func.value
        if source is not None and view.value(source).is_tensor and maybe_device(view.value(source)):
            return view.value(source)
    return None


def _uploads(call: ast.Call, name: str, dotted: str, view: FunctionView) -> bool:
    """A tensor of host data that goes to the device: ``torch.tensor(data, device=…)``, ``made_on_host.to(device)``."""
    if name in DATA and dotted == f"torch.{name}":
        device = argument(call, None, "device")
        source = call.args[0] if call.args else None
        if device is None or is_host_device(device, view) or source is None or view.value(source).is_tensor:
            return False
        return not isinstance(source, ast.Constant) or name == "tensor"
    moved = move(call, view)
    if moved is None:
        return False
    made = view.value(moved.made)
    return host_factory(moved.made, view) is not None or (made.is_tensor and made.device is Device.HOST)
