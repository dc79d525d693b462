"""Calls of ``torch.distributed``: which move tensors between ranks, which move Python objects or only wait."""

from __future__ import annotations

import ast

from awp_lint.detector.semantics.view import FunctionView

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


def collective(call: ast.Call, view: FunctionView) -> str | None:
    """The name of the collective that a call is."""
    dotted = view.qualified(call.func)
    if dotted is None or not dotted.startswith("torch.distributed."):
        return None
    name = dotted.rpartition(".")[2]
    return name if name in TENSOR | OBJECT | BARRIER else None
