"""Calls of ``torch.distributed``: which move tensors between ranks, which move Python objects or only wait."""

from __future__ import annotations

import ast
import re

from awp_lint.detector.semantics.view import FunctionView, LoopKind

#: Collectives whose first argument is the tensor (or the list of tensors) that they work on.
TENSOR = frozenset({
    "all_reduce", "reduce", "broadcast", "all_gather", "all_gather_into_tensor", "reduce_scatter",
    "reduce_scatter_tensor", "gather", "scatter", "all_to_all", "all_to_all_single",
})  # fmt: skip
OBJECT = frozenset({
    "all_gather_object", "broadcast_object_list", "gather_object", "scatter_object_list", "send_object_list",
    "recv_object_list",
})  # fmt: skip
BARRIER = frozenset({"barrier", "monitored_barrier"})
#: Those that change their first argument in place.
IN_PLACE = frozenset({"all_reduce", "reduce", "broadcast"})

_SETUP = re.compile(
    r"(^|_)(init\w*|create\w*|set_?up|register\w*|connect\w*|same_node\w*|first|profile\w*|dummy\w*|warm_?up)(_|$)"
)
_HOT_NAMES = frozenset({"forward", "generate", "decode", "step", "execute_model", "sample", "__call__"})


def hot_here(call: ast.Call, view: FunctionView) -> bool:
    """Whether this very function says that the call is hot: a loop in it, or its name.

    Helpers of communication are called from set-up and from steps alike, through objects that nothing tells apart, so
    what their callers do proves little.
    """
    name = view.qualname.rpartition(".")[2]
    if _SETUP.search(name) or name in TENSOR | OBJECT | BARRIER:
        return False
    if any(word in ast.unparse(view.statement(call)) for word in ("profile", "dummy", "warmup")):
        return False
    hot = (LoopKind.TOKENS, LoopKind.STEPS, LoopKind.LAYERS, LoopKind.BATCH, LoopKind.EXPERTS)
    return name in _HOT_NAMES or any(view.loop_kind(loop) in hot for loop in view.loops(call))


def collective(call: ast.Call, view: FunctionView) -> str | None:
    """The name of the collective that a call is."""
    dotted = view.qualified(call.func)
    if dotted is None or not dotted.startswith("torch.distributed."):
        return None
    name = dotted.rpartition(".")[2]
    return name if name in TENSOR | OBJECT | BARRIER else None
