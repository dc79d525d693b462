"""Reads of a device value by the host: what counts as one, and which of them nobody can avoid."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.semantics.values import Certainty, Device, Kind, Value
from awp_lint.detector.semantics.view import Frequency, FunctionView, Level, LoopKind
from awp_lint.rules.common import (
    ancestors,
    argument,
    assigned_name,
    callee,
    host_named,
    hot_frequency,
    maybe_device,
    method,
    names_in,
    served_frequency,
    target_names,
)
from awp_lint.rules.memory.factories import only_casts
from awp_lint.rules.plain import no_tensor

READ_METHODS = frozenset({"item", "tolist", "cpu", "numpy"})
READ_BUILTINS = frozenset({"int", "float", "complex"})
READ_NAMES = READ_METHODS | READ_BUILTINS | {"to"}

#: Functions that take sizes and bounds as Python integers: a read that feeds them is their contract.
_INT_CALLEES = frozenset({
    "flash_attn_varlen_func", "flash_attn_varlen_qkvpacked_func", "flash_attn_varlen_kvpacked_func", "varlen_fwd",
    "flash_varlen_fn", "memory_efficient_attention", "split", "split_with_sizes", "tensor_split", "unpad_input",
    "pad_input", "BlockDiagonalMask", "from_seqlens", "all_to_all_single",
})  # fmt: skip
_INT_NAMES = re.compile(
    r"max_?seq_?len(gth)?s?(_\w+)?|max_(length|len|seqlen)(_\w+)?|max_s|(q|kv|k)_max(_seq_?len)?|(\w+_)?split(s|_sizes?)|(\w+_)?splits"
)
_TOKEN_WORDS = re.compile(r"(^|_)(tok(en)?s?|next|ids?|sampled|eos|predicted|selected)(_|$)", re.IGNORECASE)
_WRAPPERS = frozenset({"enumerate", "zip", "reversed", "list", "tuple", "tqdm", "iter", "map", "filter"})
#: Libraries that work on the host for milliseconds: what a function hands them it reads in vain only where nobody asks.
_HOST_LIBRARIES = frozenset({"cv2", "fastcluster", "scipy", "shapely", "skimage", "sklearn"})
_PICKS = frozenset({"argmax", "multinomial", "topk"})


@dataclass(frozen=True, slots=True)
class Read:
    """A call that brings ``source`` (whose value is ``value``) to the host."""

    call: ast.Call
    source: ast.expr
    value: Value
    how: str


def device_read(call: ast.Call, view: FunctionView) -> Read | None:
    """The read that a call is, where its source is a tensor that is not known to live on the host.

    The device may be unknown: the caller decides what that is worth.
    """
    found = method(call)
    if found is not None:
        source, name = found
        if name in READ_METHODS and not call.args:
            how = name
        elif name == "to" and _to_host(call, view):
            how = "to"
        else:
            return None
    elif isinstance(call.func, ast.Name) and call.func.id in READ_BUILTINS and len(call.args) == 1:
        source, how = call.args[0], call.func.id
    else:
        return None
    if no_tensor(source, view):
        return None
    value = view.value(source)
    if not maybe_device(value) or host_named(source):
        return None
    if how == "numpy" and not (value.device is Device.ACCELERATOR and value.certainty is Certainty.PROVEN):
        return None  # `.numpy()` of a device tensor raises: who calls it without `.cpu()` has a host tensor
    return Read(call, source, value, how)


def _to_host(call: ast.Call, view: FunctionView) -> bool:
    late = argument(call, None, "non_blocking")
    if isinstance(late, ast.Constant) and late.value is True:
        return False  # into pinned memory, and the host goes on
    target = argument(call, 0, "device")
    if isinstance(target, ast.Constant):
        return target.value == "cpu"
    if only_casts(call):
        return False
    result = view.value(call)
    return result.is_tensor and result.device is Device.HOST


def serves_int_contract(read: Read, view: FunctionView) -> bool:
    """Whether the value goes where a Python integer is demanded: kernels with host-side bounds, split sizes."""
    name = assigned_name(view, read.call)
    if name is None:
        name = _assigned_from(view, read.call)
    if name is not None:
        if _INT_NAMES.fullmatch(name):
            return True
        return any(_feeds_int(view, use) for use in view.uses(name) if _in_view(view, use))
    return _feeds_int(view, read.call)


def uploaded_from(read: Read, view: FunctionView) -> ast.expr | None:
    """The list or array of the host that all of a read's source was copied from in the same function: nobody has to
    ask the device for what is worked out of it."""
    found: ast.expr | None = None
    for name in sorted(names_in(read.source)):
        if name == "torch":
            continue
        bound = view.assignments(name)
        if len(bound) != 1 or not isinstance(bound[0], ast.Assign) or not isinstance(bound[0].value, ast.Call):
            return None
        call = bound[0].value
        dotted = view.qualified(call.func)
        if dotted not in ("torch.tensor", "torch.as_tensor", "torch.from_numpy") or not call.args:
            return None
        data = view.value(call.args[0])
        if data.kind is not Kind.SEQUENCE and not data.on_host:
            return None
        if data.kind is Kind.SEQUENCE and data.element is not None and data.element.is_tensor:
            return None
        found = call.args[0]
    return found


def for_host_library(read: Read, view: FunctionView) -> bool:
    """Whether a whole tensor is brought to the host in a function that works with a library of the host's."""
    if read.how not in ("cpu", "numpy", "to"):
        return False
    for node in view.nodes(ast.ImportFrom, ast.Import):
        named = (
            [node.module or ""] if isinstance(node, ast.ImportFrom) else [a.name for a in getattr(node, "names", ())]
        )
        if any(name.partition(".")[0] in _HOST_LIBRARIES for name in named):
            return True
    calls = (view.qualified(node.func) or "" for node in view.nodes(ast.Call) if isinstance(node, ast.Call))
    return any(name.partition(".")[0] in _HOST_LIBRARIES for name in calls)


def _assigned_from(view: FunctionView, node: ast.AST) -> str | None:
    """As :func:`assigned_name`, through ``int(...)``, ``max(...)`` and indexing around the node."""
    for parent in ancestors(view, node):
        if (
            isinstance(parent, ast.Call)
            and isinstance(parent.func, ast.Name)
            and parent.func.id in ("int", "max", "list")
        ):
            name = assigned_name(view, parent)
            if name:
                return name
            continue
        return None
    return None


def _in_view(view: FunctionView, node: ast.AST) -> bool:
    return view.parent(node) is not None


def _feeds_int(view: FunctionView, node: ast.AST) -> bool:
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.keyword):
            if parent.arg is not None and _INT_NAMES.fullmatch(parent.arg):
                return True
        elif isinstance(parent, ast.Call):
            name = callee(parent)
            if child is not parent.func and name in _INT_CALLEES:
                return True
            if name not in ("int", "max", "min", "list", "tuple"):
                return False
        elif isinstance(parent, ast.Dict):
            key = next((k for k, v in zip(parent.keys, parent.values, strict=True) if v is child), None)
            return (
                isinstance(key, ast.Constant) and isinstance(key.value, str) and bool(_INT_NAMES.fullmatch(key.value))
            )
        elif not isinstance(parent, ast.BinOp | ast.List | ast.Tuple | ast.Starred | ast.Subscript):
            return False
        child = parent
    return False


def is_token_read(read: Read, view: FunctionView) -> bool:
    """Whether the read brings the token just picked to the host, once a decode step: nobody can avoid that one.

    A read for every row of the batch is not meant: one read of all rows serves.
    """
    frequency = view.frequency(read.call)
    if not frequency.known or not frequency.path or frequency.path[-1] not in (Level.TOKEN, Level.STEP):
        return False
    kinds = [view.loop_kind(loop) for loop in view.loops(read.call)]
    if any(kind in (LoopKind.BATCH, LoopKind.ELEMENTS, LoopKind.LAYERS) for kind in kinds):
        return False
    return _is_token(read.source, view, depth=3)


def _is_token(node: ast.expr, view: FunctionView, depth: int) -> bool:
    if isinstance(node, ast.Call):
        name = callee(node)
        if name in _PICKS:
            return True
        if name in ("squeeze", "view", "reshape", "flatten", "detach", "to", "long", "int", "contiguous", "cpu"):
            found = method(node)
            return found is not None and _is_token(found[0], view, depth)
        return bool(_TOKEN_WORDS.search(name)) and "sample" in name
    if isinstance(node, ast.Subscript):
        return _is_token(node.value, view, depth)
    if isinstance(node, ast.Attribute):
        return bool(_TOKEN_WORDS.search(node.attr))
    if isinstance(node, ast.Name):
        if _TOKEN_WORDS.search(node.id):
            return True
        if depth > 0:
            for statement in view.assignments(node.id):
                if isinstance(statement, ast.Assign) and _is_token(statement.value, view, depth - 1):
                    return True
    return False


def read_frequency(view: FunctionView, node: ast.expr) -> Frequency | None:
    """As ``hot_frequency``; elements that a loop takes from a device tensor count as hot within a request."""
    taken = iterated_from(view, node) is not None or counted_from(view, node) is not None
    return served_frequency(view, node) if taken else hot_frequency(view, node)


def counted_from(view: FunctionView, node: ast.expr) -> ast.expr | None:
    """The device tensor of which a loop that counts (``for i in range(n)``) takes an element in the node: ``x[i]``."""
    for loop in view.loops(node):
        if not isinstance(loop, ast.For | ast.comprehension) or view.loop_kind(loop) is LoopKind.FIXED:
            continue
        if not isinstance(loop.iter, ast.Call) or getattr(loop.iter.func, "id", None) != "range":
            continue
        counter = target_names(loop.target)
        for part in ast.walk(node):
            if not isinstance(part, ast.Subscript) or not isinstance(part.slice, ast.Name):
                continue
            if part.slice.id in counter and view.value(part.value).on_device:
                return part.value
    return None


def iterated_from(view: FunctionView, node: ast.expr) -> ast.expr | None:
    """The device tensor that a loop around the node goes over, where the node is one of its elements."""
    used = names_in(node)
    for loop in view.loops(node):
        if isinstance(loop, ast.While):
            continue
        if used & target_names(loop.target):
            for source in iterables(loop.iter):
                if maybe_device(view.value(source)):
                    return source
    return None


def iterables(node: ast.expr) -> Iterator[ast.expr]:
    """What is really iterated: the arguments of ``enumerate``, ``zip`` and the like."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in _WRAPPERS:
        for arg in node.args:
            yield from iterables(arg)
    else:
        yield node
