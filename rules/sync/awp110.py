"""AWP110 hidden-sync-call."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Event, MarkKind, RootCause
from awp_lint.detector.semantics.library import last_names, lookup
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FileView, FunctionView, LoopKind
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    argument,
    callee,
    frequency_reason,
    hot_frequency,
    lower,
    maybe_device,
    method,
    often,
    reasons,
    served_frequency,
    short,
    sureness,
)
from awp_lint.rules.sync.reads import device_read
from awp_lint.rules.sync.stepindex import lookup_in_loop

_ROWS = (LoopKind.BATCH, LoopKind.REQUESTS, LoopKind.ELEMENTS, LoopKind.EXPERTS, LoopKind.LAYERS, LoopKind.UNKNOWN)
#: Calls that wait and that other rules speak of.
_OTHERS = frozenset({
    "item", "tolist", "cpu", "numpy", "nonzero", "argwhere", "masked_select", "unique", "unique_consecutive", "where",
    "repeat_interleave", "synchronize", "empty_cache", "barrier", "wait", "save", "ctc_loss", "generate", "__array__",
    "mem_get_info", "ipc_collect", "to_sparse", "coalesce", "new_tensor",
})  # fmt: skip
#: Decompositions that torch has in one form only, which always waits: nothing to be done about one of them.
_ONE_FORM = frozenset({
    "eigh", "eigvalsh", "eig", "eigvals", "svd", "svdvals", "lstsq", "pinv", "matrix_rank", "symeig", "svd_lowrank",
    "cond", "nms", "batched_nms",
})  # fmt: skip
_ADVICE = {
    "nms": "call `torchvision.ops.batched_nms` once, with the item's number in the place of the class",
    "inv": "use `torch.linalg.inv_ex`, which checks nothing on the host",
    "cholesky": "use `torch.linalg.cholesky_ex`, which checks nothing on the host",
    "solve": "use `torch.linalg.solve_ex`, which checks nothing on the host",
    "equal": "compare on the device (`(a == b).all()`) and keep the result there",
    "allclose": "compare on the device (`torch.isclose(a, b).all()`) and keep the result there",
    "one_hot": "pass `num_classes=`",
    "histc": "pass `min=` and `max=`",
    "bincount": "use `scatter_add_` into a tensor of known size",
    "is_nonzero": "keep the decision on the device (`torch.where`)",
    "Categorical": "pass `validate_args=False`, or sample with `torch.multinomial`",
    "Normal": "pass `validate_args=False`, or sample with `torch.randn_like`",
    "Bernoulli": "pass `validate_args=False`, or sample with `torch.bernoulli`",
}


class HiddenSyncCall(Rule):
    """A library call that waits for the device inside."""

    id = "AWP110"
    name = "hidden-sync-call"
    root_cause = RootCause.RUNTIME
    cost_us = 100.0
    event = Event.WAIT
    mark = MarkKind.CALL
    words = (
        b"equal", b"allclose", b"bincount", b"histc", b"one_hot", b"is_nonzero", b"linalg", b"nms", b"lstsq",
        b"Categorical", b"Normal", b"Bernoulli", b"Gumbel", b"scheduler",
    )  # fmt: skip
    nodes = (ast.Call, ast.For)
    repeated = True
    doubted = True

    summary = "a library call waits for the device inside"
    what = """
        Calls that look like plain device work and wait inside: `torch.equal`, `allclose`, `bincount`, `histc` without
        a range, `one_hot` without `num_classes`, checked linear algebra (`inv`, `solve`, `cholesky`),
        and in a loop over items `nms` and what has one form only (`svd`, `eigh`, `lstsq`); a table by torch
        version, for device tensors in code that runs for every step, token or layer. And a denoising loop that calls
        `step` of a diffusers scheduler that was not told its first index, in a file that never calls
        `set_begin_index`: the scheduler searches its timesteps on the device.
        """
    why = """
        The call returns a Python value, or needs one to size or check its result, so the host waits.
        """
    fine = """
        - With the argument that makes the size known (`num_classes`, `min` and `max`).
        - `svd`, `eigh`, `nms` and their kin outside a loop over items: torch has no form of them that does not wait.
        - A search for the first step where each step reads from the device anyway.
        - Host tensors, set-up, once a request, tests and training. The search for the first step runs once a request,
          in front of everything that follows.
        """
    safety = """
        A recommendation only: the argument or the call that avoids the wait.
        """
    references = (
        "huggingface/diffusers#9580 schedulers and set_begin_index",
        "https://docs.pytorch.org/docs/stable/generated/torch.equal.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.one_hot.html",
        "https://docs.pytorch.org/docs/stable/generated/torch.linalg.inv_ex.html",
    )
    bad = """
        import torch
        import torch.nn.functional as F

        class Experts(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = hidden_states + layer(hidden_states)
                    chosen = F.one_hot(hidden_states.argmax(dim=-1))
                    hidden_states = hidden_states * chosen.float().mean()
                return hidden_states
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Experts(torch.nn.Module):
            def __init__(self, layers: torch.nn.ModuleList) -> None:
                super().__init__()
                self.layers = layers

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = hidden_states + layer(hidden_states)
                    chosen = F.one_hot(hidden_states.argmax(dim=-1), num_classes=hidden_states.shape[-1])
                    hidden_states = hidden_states * chosen.float().mean()
                return hidden_states
        """

    @classmethod
    def asked_about(cls) -> frozenset[str]:
        return last_names("wait")

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.For):
            yield from _search(node, view, file)
            return
        assert isinstance(node, ast.Call)
        name = callee(node)
        if name in _OTHERS:
            return
        dotted = view.qualified(node.func)
        if dotted is None or not dotted.startswith(("torch.", "torchvision.")):
            return
        fact = lookup(dotted, file.target)
        if fact is None or not fact.waits or "collective" in fact.effects or not _met(fact.wait_condition, node):
            return
        source = (
            node.func.value if dotted.startswith("torch.Tensor.") and isinstance(node.func, ast.Attribute) else None
        )
        operands = [source] if source is not None else node.args[:2]
        operand = next((arg for arg in operands if maybe_device(view.value(arg))), None)
        if operand is None:
            return
        frequency = hot_frequency(view, node)
        if frequency is None or (name in _ONE_FORM and not _in_rows(node, name, view)):
            return
        value = view.value(operand)
        yield Candidate(
            node=node,
            message=f"`{short(node)}` waits for the device inside, {often(frequency)}".rstrip(", "),
            action=_ADVICE.get(name, f"use a form of `{name}` that does not check or size on the host"),
            confidence=sureness(view, node, frequency, value),
            frequency=frequency,
            why=(f"`{dotted}` waits", *reasons(value, operand), *frequency_reason(frequency)),
        )


def _in_rows(node: ast.Call, name: str, view: FunctionView) -> bool:
    """Whether the call stands in a loop over items whose calls could be one. A pass that gathers what it works on in a
    loop of its own is long beside the call, and the others would have to wait for it."""
    loops = view.loops(node)
    if not loops or isinstance(loops[0], ast.While) or name == "batched_nms":
        return False
    if any(isinstance(part, ast.For | ast.While) for part in getattr(loops[0], "body", ())):
        return False
    return view.loop_kind(loops[0]) in _ROWS


def _search(loop: ast.For, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    """The search of a scheduler for its first step."""
    found = lookup_in_loop(loop, view, file)
    if found is None:
        return
    frequency = served_frequency(view, loop)
    if frequency is None or _reads_anyway(loop, view):
        return
    name, step = short(found.scheduler, 40), view.statement(found.step)
    message = f"the first `{name}.step(...)` searches its timesteps on the device and waits, {often(frequency)}"
    yield Candidate(
        node=loop,
        message=message,
        action=f"call `{name}.set_begin_index(...)` with the index of the first step before the loop",
        confidence=lower(sureness(view, loop, frequency), Confidence.MEDIUM),
        frequency=frequency,
        why=(f"`{name}` is a {found.cls}, which looks the step up where nothing told it", *frequency_reason(frequency)),
        mark=MarkKind.STATEMENT,
        lines=(step, step),
        covers=(found.step,),
    )


def _reads_anyway(loop: ast.For, view: FunctionView) -> bool:
    """Whether a pass reads from the device by itself: one search in front of so many waits is nothing."""
    calls = (part for part in view.nodes(ast.Call) if isinstance(part, ast.Call) and loop in view.loops(part))
    return any(
        device_read(call, view) is not None or _takes_item(call, view) or _makes_anew(call, view) for call in calls
    )


def _makes_anew(call: ast.Call, view: FunctionView) -> bool:
    """``torch.tensor([t / 1000])`` of a tensor that is not known to live on the host: it is read to be copied."""
    if callee(call) != "tensor" or (view.qualified(call.func) or "") != "torch.tensor" or not call.args:
        return False
    given = call.args[0]
    parts = given.elts if isinstance(given, ast.List | ast.Tuple) else [given]
    return any(maybe_device(view.value(part)) for part in parts)


def _takes_item(call: ast.Call, view: FunctionView) -> bool:
    """``sigmas[i].item()`` of something that is not known to live on the host."""
    found = method(call)
    return found is not None and found[1] == "item" and not call.args and view.value(found[0]).device is not Device.HOST


def _met(condition: str | None, call: ast.Call) -> bool:
    """Whether the call waits under a condition of the facts; other conditions are other rules' business."""
    if condition is None:
        return True
    if condition == "no-classes":
        classes = argument(call, 1, "num_classes")
        return classes is None or ast.unparse(classes) == "-1"
    if condition == "no-range":
        return argument(call, 3, "max") is None
    if condition == "validated":
        checked = argument(call, None, "validate_args")
        return isinstance(call.func, ast.Name | ast.Attribute) and callee(call)[:1].isupper() and checked is None
    return False
