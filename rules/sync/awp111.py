"""AWP111 cpu-sampling."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.values import Certainty, Device, Value
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.calls import over_batches
from awp_lint.rules.common import (
    ancestors,
    assigned_name,
    callee,
    frequency_reason,
    hot_frequency,
    often,
    served_frequency,
    short,
    sureness,
)
from awp_lint.rules.common import reasons as value_reasons
from awp_lint.rules.sync.reads import READ_NAMES, device_read

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_SCORES = re.compile(r"(^|_)(logits?|scores?|probs?|probabilities|log_?probs?|lprobs|logprobs)(_|\d|$)", re.IGNORECASE)
_PICKS = frozenset({
    "argmax", "multinomial", "topk", "choice", "choices", "argsort", "argpartition", "sort", "softmax", "log_softmax",
    "sample", "sorted", "nlargest", "partition", "categorical", "argmin",
})  # fmt: skip
_HOPS = 4


class CpuSampling(Rule):
    """Scores brought to the host to pick from them."""

    id = "AWP111"
    name = "cpu-sampling"
    root_cause = RootCause.RUNTIME
    cost_us = 400.0
    event = Event.WAIT
    words = (b".cpu", b".numpy", b".tolist", b'"cpu"', b"'cpu'")
    nodes = (ast.Call,)
    calls = READ_NAMES
    repeated = True
    doubted = True
    over = ("AWP101", "AWP604")

    summary = "logits are copied to the host to sample or take the top k there"
    what = """
        Logits, scores or probabilities are copied to the host (`.cpu()`, `.numpy()`, `.tolist()`) and then sorted,
        soft-maxed or sampled there with NumPy, Python or CPU tensors, at every step or token, or for every block of a
        loop over batches.
        """
    why = """
        The copy has the size of the vocabulary times the batch where one integer a row would do; the host waits for the
        forward, works through the vocabulary on one core, and the device idles meanwhile.
        """
    fine = """
        - Copying the picked token ids, or the k best values, after `topk`/`argmax`/`multinomial` on the device.
        - Scores returned to the user once at the end.
        - Below a parameter that is None unless somebody passes it, where no caller is seen: low confidence.
        - Host models.
        """
    safety = """
        Unsafe where nothing random is drawn and only `topk`, `argmax`, `sort`, `softmax` and the like come between
        the copy and the numbers that Python reads: the copy is dropped, the numbers are read. Sampling gets a
        recommendation (`torch.multinomial` on the device): its random numbers come from another generator, so sampled
        text differs for the same seed.
        """
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.multinomial.html",
        "huggingface/transformers#46693 how readings of device values in generation were weighed",
    )
    bad = """
        import numpy as np
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            input_ids = input_ids.to("cuda")
            for _ in range(max_new_tokens):
                logits = model(input_ids)[:, -1]
                probs = torch.softmax(logits, dim=-1).cpu().numpy()
                picked = np.random.choice(probs.shape[-1], p=probs[0])
                input_ids = torch.cat([input_ids, torch.full((1, 1), picked, device="cuda")], dim=1)
            return input_ids
        """
    good = """
        import torch

        @torch.inference_mode()
        def generate(model: torch.nn.Module, input_ids: torch.Tensor, max_new_tokens: int) -> torch.Tensor:
            input_ids = input_ids.to("cuda")
            for _ in range(max_new_tokens):
                logits = model(input_ids)[:, -1]
                picked = torch.multinomial(torch.softmax(logits, dim=-1), 1)
                input_ids = torch.cat([input_ids, picked], dim=1)
            return input_ids
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        read = device_read(node, view)
        if read is None or read.how in ("item", "int", "float", "complex"):
            return
        if not _is_scores(read.source, view, 2) and not _kept_as_scores(node, view):
            return
        pick = _picked(node, view, _HOPS)
        if pick is None:
            return
        frequency = hot_frequency(view, node)
        if frequency is None and any(
            over_batches(loop) for loop in view.loops(node) if not isinstance(loop, ast.While)
        ):
            frequency = served_frequency(view, node)  # a block of scores in each pass
        if frequency is None:
            return
        confidence = sureness(view, node, frequency, _assumed(read.value, read.source))
        source = short(read.source, 40)
        yield Candidate(
            node=node,
            message=(
                f"`{short(node)}` copies all scores to the host {often(frequency)}"
                f" and `{short(pick, 40)}` picks from them there"
            ),
            action=f"pick from `{source}` on the device and read only the ids",
            confidence=confidence,
            frequency=frequency,
            why=(*value_reasons(read.value, read.source), *frequency_reason(frequency)),
            covers=tuple(_same_chain(node, view)),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call = candidate.node
        assert isinstance(call, ast.Call)
        if callee(call) not in ("cpu", "to") or not isinstance(call.func, ast.Attribute):
            return None
        if callee(call) == "to" and len(call.args) + len(call.keywords) != 1:
            return None  # a cast as well
        if not _only_read(call, definition.view, _HOPS):
            return None
        return Fix(
            title=f"pick from `{short(call.func.value, 40)}` on the device",
            safety=Safety.UNSAFE,
            edits=(definition.replace(call, definition.text(call.func.value)),),
            effects=(Effect.NUMERICS, Effect.TIMING),
            requires=("ties and the last bits may fall differently on the device",),
        )


#: Deterministic calls on the way from scores to what Python reads.
_ON_THE_WAY = frozenset({"topk", "argmax", "max", "sort", "softmax", "log_softmax", "float", "squeeze", "exp", "log"})


def _only_read(node: ast.expr, view: FunctionView, hops: int) -> bool:
    """Whether everything that becomes of a host tensor is computed without other tensors and then read as numbers."""
    parent = view.parent(node)
    if isinstance(parent, ast.Attribute) and parent.value is node:
        if parent.attr in ("values", "indices"):
            return _only_read(parent, view, hops)
        call = view.parent(parent)
        if not isinstance(call, ast.Call) or call.func is not parent:
            return parent.attr in ("shape", "dtype")
        if parent.attr in ("tolist", "item", "numel", "size", "dim"):
            return True
        return parent.attr in _ON_THE_WAY and _no_tensors(call, node, view) and _only_read(call, view, hops)
    if isinstance(parent, ast.Call) and node in parent.args:
        dotted = view.qualified(parent.func) or ""
        on_the_way = dotted.startswith("torch.") and dotted.rpartition(".")[2] in _ON_THE_WAY
        return on_the_way and _no_tensors(parent, node, view) and _only_read(parent, view, hops)
    if isinstance(parent, ast.Subscript) and parent.value is node:
        plain = not any(view.value(p).is_tensor for p in ast.walk(parent.slice) if isinstance(p, ast.expr))
        return plain and _only_read(parent, view, hops)
    if isinstance(parent, ast.Assign) and parent.value is node and len(parent.targets) == 1 and hops > 0:
        target = parent.targets[0]
        names = target.elts if isinstance(target, ast.Tuple) else [target]
        for name in names:
            if not isinstance(name, ast.Name) or list(view.assignments(name.id)) != [parent]:
                return False
            uses = view.uses(name.id)
            if any(view.parent(use) is None or not _only_read(use, view, hops - 1) for use in uses):
                return False
        return True
    return False


def _no_tensors(call: ast.Call, besides: ast.expr, view: FunctionView) -> bool:
    parts = [*call.args, *(k.value for k in call.keywords)]
    return not any(view.value(part).is_tensor for part in parts if part is not besides)


def _is_scores(node: ast.expr, view: FunctionView, depth: int) -> bool:
    """Whether names say that these are scores over a vocabulary, not yet picked from."""
    for part in ast.walk(node):
        if isinstance(part, ast.Call):
            name = part.func.attr if isinstance(part.func, ast.Attribute) else getattr(part.func, "id", "")
            if name in ("topk", "argmax", "multinomial", "gather"):
                return False
    for part in ast.walk(node):
        if isinstance(part, ast.Name | ast.Attribute):
            word = part.id if isinstance(part, ast.Name) else part.attr
            if _SCORES.search(word) or word in ("softmax", "log_softmax"):
                return True
    if depth > 0 and isinstance(node, ast.Name):
        for statement in view.assignments(node.id):
            if isinstance(statement, ast.Assign) and _is_scores(statement.value, view, depth - 1):
                return True
    return False


def _kept_as_scores(node: ast.Call, view: FunctionView) -> bool:
    """Whether the local that takes what is read, and what is chained to it, is named for scores."""
    outer: ast.AST = node
    for parent in _same_chain(node, view):
        outer = parent
    name = assigned_name(view, outer)
    return name is not None and _SCORES.search(name) is not None


def _picked(node: ast.AST, view: FunctionView, hops: int) -> ast.expr | None:
    """The call that picks from the value of a node, followed through chains and local names."""
    child = node
    for parent in ancestors(view, node):
        if isinstance(parent, ast.Call):
            name = parent.func.attr if isinstance(parent.func, ast.Attribute) else getattr(parent.func, "id", "")
            if name in _PICKS:
                return parent
        elif isinstance(parent, ast.stmt):
            break
        child = parent
    name_of = assigned_name(view, child)
    if name_of is None or hops == 0:
        return None
    for use in view.uses(name_of):
        if use.lineno <= child.lineno or view.parent(use) is None:  # type: ignore[attr-defined]
            continue
        found = _picked(use, view, hops - 1)
        if found is not None:
            return found
    return None


def _same_chain(node: ast.Call, view: FunctionView) -> Iterator[ast.AST]:
    """The calls chained to this one: ``x.cpu()`` of ``x.cpu().numpy()`` and the other way round."""
    for parent in ancestors(view, node):
        if not isinstance(parent, ast.Attribute | ast.Call):
            return
        yield parent


def _assumed(value: Value, source: ast.expr) -> Value:
    """The value, at least assumed where it comes from the ``logits`` of an output: whichever model filled them in."""
    named = any(isinstance(part, ast.Attribute) and part.attr == "logits" for part in ast.walk(source))
    if named and value.device is Device.AMBIENT and value.certainty is Certainty.UNKNOWN:
        return replace(value, certainty=Certainty.ASSUMED)
    return value
