"""Tensors made on the host and then moved to the device."""

from __future__ import annotations

import ast
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Device, DTypeClass, Kind
from awp_lint.detector.semantics.view import FunctionView
from awp_lint.rules.common import argument, method, opaque
from awp_lint.rules.memo import remembered_name

#: Factories whose values do not depend on where they are made.
SAME_ANYWHERE = frozenset({"zeros", "ones", "empty", "full", "eye"})
LIKE = frozenset({"zeros_like", "ones_like", "empty_like", "full_like"})
COMPUTED = frozenset({"arange", "linspace", "logspace", "range", "tril_indices", "triu_indices", "hann_window"})
RANDOM = frozenset({"rand", "randn", "randint", "normal", "randperm"})
FACTORIES = SAME_ANYWHERE | COMPUTED | RANDOM
#: Tensors of Python or NumPy data.
DATA = frozenset({"tensor", "as_tensor", "from_numpy", "FloatTensor", "LongTensor", "IntTensor", "BoolTensor"})


_DTYPES = frozenset({
    "float", "float16", "float32", "float64", "bfloat16", "half", "double", "int", "int8", "int16", "int32", "int64",
    "long", "short", "uint8", "bool",
})  # fmt: skip


@dataclass(frozen=True, slots=True)
class Move:
    """``made.to(device, …)`` or ``made.cuda()`` (``device`` None); ``like`` is the tensor of ``made.to(like)``."""

    call: ast.Call
    made: ast.expr
    device: ast.expr | None
    dtype: ast.expr | None = None
    like: ast.expr | None = None


def move(call: ast.Call, view: FunctionView) -> Move | None:
    """The move to another device that a call is; None where it is a cast, a move to the host, or not understood."""
    found = method(call)
    if found is None or opaque(call):
        return None
    made, name = found
    if name == "cuda":
        device = argument(call, 0, "device")
        return Move(call, made, device)
    if name != "to":
        return None
    device = argument(call, None, "device")
    dtype = argument(call, None, "dtype")
    like = argument(call, None, "other")
    for position, arg in enumerate(call.args[:2]):
        if _is_dtype(arg, view):
            dtype = arg
        elif position == 0 and view.value(arg).is_tensor:
            like = arg
        elif position == 0:
            device = arg
    if device is None and like is None:
        return None
    if device is not None and (not _is_device(device, view) or is_host_device(device, view)):
        return None
    return Move(call, made, device, dtype, like)


def _is_dtype(node: ast.expr, view: FunctionView) -> bool:
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "dtype" in name.lower() or _names_dtype(node) or view.value(node).kind is Kind.DTYPE


def only_casts(call: ast.Call) -> bool:
    """Whether ``x.to(…)`` is told to change the type alone, as far as names tell."""
    if any(keyword.arg not in ("dtype", "copy", "non_blocking") for keyword in call.keywords):
        return False
    if not call.args:
        return True
    arg = call.args[0]
    name = arg.attr if isinstance(arg, ast.Attribute) else arg.id if isinstance(arg, ast.Name) else ""
    return len(call.args) == 1 and ("dtype" in name.lower() or _names_dtype(arg))


def _names_dtype(node: ast.expr) -> bool:
    """``torch.float32``, whose value need not be asked for."""
    torch = isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "torch"
    return torch and node.attr in _DTYPES  # type: ignore[attr-defined]


def _is_device(node: ast.expr, view: FunctionView) -> bool:
    if view.value(node).kind is Kind.DEVICE:
        return True
    if isinstance(node, ast.Constant):
        return isinstance(node.value, str | int) and node.value != "cpu"
    if isinstance(node, ast.JoinedStr):
        return True
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
    return "device" in name.lower() or name in ("rank", "local_rank", "gpu")


def is_host_device(node: ast.expr, view: FunctionView) -> bool:
    """Whether a device argument names the host."""
    if isinstance(node, ast.Constant):
        return node.value in ("cpu", None)
    if isinstance(node, ast.Call) and node.args:
        return isinstance(node.args[0], ast.Constant) and node.args[0].value == "cpu"
    name = node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""
    return "cpu" in name.lower() or "host" in name.lower()


def host_factory(node: ast.expr, view: FunctionView) -> str | None:
    """The factory's name where a call makes a tensor on the default device, which the call does not choose."""
    if not isinstance(node, ast.Call) or (isinstance(node.func, ast.Attribute) and node.func.attr not in FACTORIES):
        return None
    dotted = view.qualified(node.func)
    if dotted is None or not dotted.startswith("torch."):
        return None
    name = dotted.rpartition(".")[2]
    if dotted != f"torch.{name}" or name not in FACTORIES:
        return None
    given = {keyword.arg for keyword in node.keywords}
    return None if given & {"device", "pin_memory", "out"} or opaque(node) else name


def _written(name: str, view: FunctionView) -> bool:
    """Whether parts of a local tensor are assigned: ``x[i] = …``."""
    for statement in view.nodes(ast.Assign, ast.AugAssign):
        assert isinstance(statement, ast.Assign | ast.AugAssign)
        for target in statement.targets if isinstance(statement, ast.Assign) else [statement.target]:
            part = target
            while isinstance(part, ast.Subscript):
                part = part.value
            if part is not target and isinstance(part, ast.Name) and part.id == name:
                return True
    return False


def is_integer(node: ast.expr, view: FunctionView) -> bool:
    """Whether a tensor expression is known to hold integers."""
    return view.value(node).dtype is DTypeClass.INT


def host_origins(node: ast.expr, view: FunctionView, depth: int = 4) -> frozenset[str]:
    """Where a host tensor's contents come from: names of factories, ``data`` for Python data, ``other``.

    Followed through tensor operators, methods and local names; empty for operands that are no tensors.
    """
    value = view.value(node)
    if value.kind is not Kind.UNKNOWN and not value.is_tensor:
        return frozenset()
    factory = host_factory(node, view)
    if factory is not None:
        return frozenset({factory})
    if isinstance(node, ast.Call):
        dotted = view.qualified(node.func) or ""
        name = dotted.rpartition(".")[2]
        if dotted == f"torch.{name}" and name in DATA:
            inner = [argument(node, 0, "data")]
            return frozenset({"data" if all(i is None or not view.value(i).is_tensor for i in inner) else "other"})
    if depth == 0:
        return frozenset({"other"})
    if isinstance(node, ast.Name):
        return _bound_origins(node.id, view, depth - 1)
    if isinstance(node, ast.BinOp):
        return host_origins(node.left, view, depth) | host_origins(node.right, view, depth)
    if isinstance(node, ast.Compare):
        return frozenset().union(*(host_origins(part, view, depth) for part in (node.left, *node.comparators)))
    if isinstance(node, ast.UnaryOp):
        return host_origins(node.operand, view, depth)
    if isinstance(node, ast.Subscript):
        return host_origins(node.value, view, depth)
    if isinstance(node, ast.Call):
        parts = [arg for arg in node.args if not isinstance(arg, ast.Starred)]
        found_method = method(node)
        if found_method is not None and view.value(found_method[0]).is_tensor:
            parts = [found_method[0], *parts]
        elif not (view.qualified(node.func) or "").startswith("torch."):
            return frozenset({"other"})
        return frozenset().union(*(host_origins(part, view, depth - 1) for part in parts)) or frozenset({"other"})
    return frozenset({"other"})


@remembered_name
def _bound_origins(name: str, view: FunctionView, depth: int) -> frozenset[str]:
    """Where the contents of all come from that a local name is bound to."""
    found: set[str] = set()
    if _written(name, view):
        found.add("other")  # filled from the host, part by part
    statements = view.assignments(name)
    for statement in statements:
        source = getattr(statement, "value", None)
        if isinstance(statement, ast.Assign | ast.AnnAssign | ast.AugAssign) and isinstance(source, ast.expr):
            targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
            plain = all(isinstance(t, ast.Name | ast.Subscript) for t in targets)
            found |= host_origins(source, view, depth) if plain else {"other"}
        else:
            found.add("other")
    return frozenset(found) if statements else frozenset({"other"})


def lives_on_host(node: ast.expr, view: FunctionView) -> bool:
    """Whether a tensor is known to be on the host."""
    value = view.value(node)
    return value.is_tensor and value.device is Device.HOST
