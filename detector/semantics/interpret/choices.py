"""Devices that a condition chooses: ``device = "cpu" if config.synchronise_on_host else group.device``."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from awp_lint.detector.semantics.definition import descendants
from awp_lint.detector.semantics.values import Certainty, Device, Kind, Value, make

#: The host or not, nobody knows: what is made there is no ground for a finding on either side.
UNDECIDED = make(Kind.DEVICE, Device.HOST, certainty=Certainty.UNKNOWN)

_CHOSEN = (Kind.DEVICE, Kind.STRING, Kind.UNKNOWN)


def asks_for_accelerator(test: ast.expr) -> bool:
    """Whether a condition asks if there is an accelerator."""
    for part in descendants(test):
        if isinstance(part, ast.Attribute) and part.attr in ("is_available", "device_count"):
            return True
        if isinstance(part, ast.Name) and ("cuda" in part.id or "gpu" in part.id):
            return True
    return False


def chosen(test: ast.expr, host: Value, other: Value) -> Value | None:
    """The device after a condition that puts it on the host on one side; None where it is told otherwise.

    A switch that names devices (``args.cpu``, ``use_gpu``) is there to be left at the accelerator.
    """
    if other.kind not in _CHOSEN or other.device is Device.HOST or host.device is not Device.HOST:
        return None
    return None if _names_device(test) or asks_for_accelerator(test) else UNDECIDED


def _names_device(test: ast.expr) -> bool:
    for part in descendants(test):
        name = part.attr if isinstance(part, ast.Attribute) else part.id if isinstance(part, ast.Name) else ""
        lowered = name.lower()
        if any(word in lowered for word in ("cpu", "cuda", "gpu", "device", "platform", "offload")):
            return True
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return True
    return False


def is_host(node: ast.expr | None) -> bool:
    """Whether an expression is ``"cpu"`` or ``torch.device("cpu")``."""
    if isinstance(node, ast.Call) and len(node.args) == 1:
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
        return name == "device" and is_host(node.args[0])
    return isinstance(node, ast.Constant) and node.value == "cpu"


def put_on_host(statements: Iterable[ast.stmt]) -> list[str]:
    """The names to which statements of a branch give the host."""
    return [
        statement.targets[0].id
        for statement in statements
        if statement.__class__ is ast.Assign
        and isinstance(statement, ast.Assign)
        and isinstance(statement.targets[0], ast.Name)
        and is_host(statement.value)
    ]
