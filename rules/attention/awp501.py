"""AWP501 manual-attention."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Event, Fix, RootCause
from awp_lint.detector.semantics.values import Device
from awp_lint.detector.semantics.view import FileView, FunctionView, Region
from awp_lint.rules.attention.pattern import (
    Attention,
    What,
    applied_weights,
    find_attention,
    scores_of,
    softmax_input,
)
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    assigned_name,
    callee,
    frequency_reason,
    judge,
    lines_of,
    lower,
    names_in,
    own_text,
    served_frequency,
    short,
)
from awp_lint.rules.fusion.context import whole_class

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_EAGER = re.compile(r"eager|naive|reference|slow|math|fallback|manual|vanilla|native_torch|torch_native", re.IGNORECASE)
_FUSED = re.compile(
    r"scaled_dot_product_attention|flash_attn|memory_efficient_attention|xformers|flex_attention|flashinfer|_sdpa|sdpa_"
)

_POOLS = re.compile(r"(^|_)pool(s|ing)?(_|\d|$)", re.IGNORECASE)
_FUSED_CLASS = re.compile(r"sdpa|flash|xformers|2_0", re.IGNORECASE)
_SCORES_CALLS = frozenset(
    f"{private}{verb}_{what}_{result}"
    for private in ("", "_")
    for verb in ("get", "compute", "calc", "calculate")
    for what in ("attention", "attn")
    for result in ("scores", "probs", "weights")
)
#: Methods that are given the scores and do the rest: softmax, dropout and the product with the values.
_APPLY_CALLS = frozenset(
    f"{private}{name}"
    for private in ("", "_")
    for name in ("forward_attention", "apply_attention", "compute_attention", "attend", "weighted_sum")
)


class ManualAttention(Rule):
    """Attention written out as two matrix products with a softmax in between."""

    id = "AWP501"
    name = "manual-attention"
    root_cause = RootCause.COMPUTE
    cost_us = 300.0
    event = Event.LAUNCHES
    words = (b"softmax", b"get_attention_scores", b"attention_probs", b"attn_probs")
    nodes = (ast.Call,)
    calls = _SCORES_CALLS | _APPLY_CALLS | {"softmax"}
    over = ("AWP303", "AWP301")

    summary = "attention is written out by hand instead of one fused call"
    what = """
        A matrix product of queries and keys, scaling, masks, a softmax and a product with the values, in any spelling
        (`@`, `matmul`, `bmm`, `baddbmm`, `einsum`), within one function, or with either half in a method of its own.
        """
    why = """
        Each step is a kernel of its own and writes the whole score matrix, queries × keys for every head, to memory and
        reads it back. A fused kernel (FlashAttention and its kin, behind `F.scaled_dot_product_attention`) keeps the
        scores on the chip. Measured on an H200, a prefill of 4 × 4000 tokens: 666 ms by hand, 99 ms fused.
        """
    fine = """
        - The weights themselves are used: something more is computed of them, or they are stored (low confidence).
        - Queries or keys that are a handful (pooled, landmarks, global tokens), and the one wide head over the pixels
          of a convolution network: low confidence. Attention of channels, too: no fused kernel takes heads as wide as
          an input has positions.
        - Softcaps, sinks, head masks and the like, which the fused call does not know (`flex_attention` may).
        - The eager branch of a switch between implementations, reference code: low confidence only.
        """
    safety = """
        Unsafe (numerics), and only where scale, mask, casts and dropout are understood, the weights are used for
        nothing else and the statements follow each other; otherwise a recommendation. A softmax in fp32 becomes the
        kernel's own fp32 accumulation. Rows in which everything is masked may differ, and a NaN in a masked place may
        no longer spread; an empty batch in a half type gives nothing on CUDA (seen with torch 2.11). An additive mask
        must have the queries' type.
        On devices of compute capability 9.0 and 10.0 recent PyTorch hands half types to cuDNN first. It builds a plan
        for every new combination of shapes: 33 to 730 ms each on an H200 with torch 2.11. Where lengths vary from call
        to call, `torch.backends.cuda.enable_cudnn_sdp(False)` belongs to the patch; a profile run tells (AWP009).
        """
    manual = True
    tolerance = 16
    references = (
        "https://docs.pytorch.org/docs/stable/generated/torch.nn.functional.scaled_dot_product_attention.html",
        "huggingface/transformers#30390 before and after figures for such a swap",
        "https://docs.pytorch.org/docs/stable/nn.attention.flex_attention.html",
    )
    bad = """
        import math

        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
                weights = F.softmax(scores, dim=-1)
                return torch.matmul(weights, v)
        """
    good = """
        import torch
        import torch.nn.functional as F

        class Attention(torch.nn.Module):
            def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
                return F.scaled_dot_product_attention(q, k, v)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if callee(node) in _SCORES_CALLS:
            yield from _split(node, view, file)
            return
        if callee(node) in _APPLY_CALLS:
            yield from _handed_on(node, view, file)
            return
        attention = find_attention(node, view)
        if attention is None or view.value(attention.scores).device is Device.HOST:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        confidence = lower(judge(frequency), Confidence.MEDIUM)
        if view.value(attention.scores).on_device:
            confidence = judge(frequency, view.value(attention.scores))
        aside = view.regions(node) & Region.FALLBACK or _has_fused_twin(view, file)
        aside = aside or attention.weights_needed or _capped(attention) or _of_pixels(view, file)
        if aside or _of_pooled_keys(view) or _of_channels(view, file) or _of_few(attention):
            confidence = lower(confidence, Confidence.LOW)
        if _told(attention, view):
            return
        first, last = attention.statements[0], view.statement(attention.output)
        query, key = short(attention.query, 30), short(attention.key, 30)
        kept = " (it must go without the weights)" if attention.weights_kept else ""
        yield Candidate(
            node=view.statement(node),
            lines=(first, last),
            message=f"attention of `{query}` and `{key}` is written out: every step writes the whole score matrix",
            action=f"call `F.scaled_dot_product_attention`{kept}",
            confidence=confidence,
            frequency=frequency,
            why=(f"product, softmax, product in lines {first.lineno}–{last.lineno}", *frequency_reason(frequency)),
            covers=tuple(part for statement in attention.statements for part in ast.walk(statement)),
            data=attention,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        from awp_lint.rules.attention.rewrite import fused_call

        return fused_call(candidate.data, definition) if isinstance(candidate.data, Attention) else None


#: Classes whose scores are of channels: as many of them as a head has, each as long as there are positions.
_CHANNELS = re.compile(r"Channel|Cross?[-_]?Covar|CrossCovariance|XCA|MDTA")


#: Axes that end in channels and all positions: ``"b (head c) h w -> b head c (h w)"``.
_POSITIONS_LAST = re.compile(r"->[^\"'\n]*\bc \((\w )+\w\)[\"']")


def _of_channels(view: FunctionView, file: FileView) -> bool:
    """Whether attention goes over channels: no fused kernel takes heads as wide as an input has positions."""
    if view.class_name is None:
        return False
    if _CHANNELS.search(view.class_name.rpartition(".")[2]):
        return True
    cls = whole_class(view, file) if "rearrange" in file.text else None
    if cls is None or cls.end_lineno is None:
        return False
    own = "\n".join(lines_of(file.text)[cls.lineno - 1 : cls.end_lineno])
    return _POSITIONS_LAST.search(own) is not None


def _split(node: ast.Call, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    """Attention whose first half stands in a method of its own: its result goes into the product with the values."""
    output = applied_weights(node, view)
    if output is None:
        return
    frequency = served_frequency(view, node)
    if frequency is None:
        return
    confidence = lower(judge(frequency), Confidence.MEDIUM)
    kept = assigned_name(view, node)
    wanted = kept is not None and len(view.uses(kept)) > len(_uses_in(view.statement(output), kept))
    if view.regions(node) & Region.FALLBACK or wanted or _has_fused_twin(view, file) or _is_sliced(view, file):
        confidence = Confidence.LOW
    first, last = view.statement(node), view.statement(output)
    yield Candidate(
        node=first,
        lines=(first, last),
        message=f"`{short(node.func, 40)}` makes the whole score matrix and line {output.lineno} applies it",
        action="call `F.scaled_dot_product_attention` on queries, keys and values",
        confidence=confidence,
        frequency=frequency,
        why=(f"scores by `{callee(node)}`, product in line {output.lineno}", *frequency_reason(frequency)),
    )


def _handed_on(node: ast.Call, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    """Attention whose second half stands in a method of its own: it is given the scores and the values."""
    scores = next((arg for arg in node.args if scores_of(arg, node, view) is not None), None)
    product = None if scores is None else scores_of(scores, node, view)
    if scores is None or product is None or view.value(product).device is Device.HOST:
        return
    rest = _own_methods(node, view, file)
    if not rest or not all(_applies(v) for v in rest):
        return
    frequency = served_frequency(view, node)
    if frequency is None:
        return
    confidence = lower(judge(frequency), Confidence.MEDIUM)
    if view.regions(node) & Region.FALLBACK or any(_has_fused_twin(v, file) for v in (view, *rest)):
        confidence = Confidence.LOW
    first, last = view.statement(product), view.statement(node)
    yield Candidate(
        node=last,
        lines=(first, last) if first.lineno <= last.lineno else (last, last),
        message=f"the scores of line {first.lineno} are a whole matrix, applied by `{short(node.func, 40)}`",
        action="call `F.scaled_dot_product_attention` on queries, keys and values (a position bias as its mask)",
        confidence=confidence,
        frequency=frequency,
        why=(f"product in line {first.lineno}, softmax in `{callee(node)}`", *frequency_reason(frequency)),
    )


def _own_methods(call: ast.Call, view: FunctionView, file: FileView) -> list[FunctionView]:
    """The definitions of the file that ``self.method(…)`` may run, of the class itself before those of its bases."""
    wanted = set(view.targets(call))
    found = [v for v in file.functions() if f"{v.module}.{v.qualname}".lstrip(".") in wanted]
    if found or view.class_name is None or getattr(getattr(call.func, "value", None), "id", None) != "self":
        return found
    named = [v for v in file.functions() if v.class_name is not None and v.qualname.endswith(f".{callee(call)}")]
    own = [v for v in named if v.class_name == view.class_name]
    bases = {base.rpartition(".")[2] for base in view.class_bases}
    return own or [v for v in named if (v.class_name or "").rpartition(".")[2] in bases]


def _applies(view: FunctionView) -> bool:
    """Whether a function takes a softmax of one of its parameters and multiplies the weights with another."""
    given = (
        {arg.arg for arg in (*view.node.args.posonlyargs, *view.node.args.args)}
        if hasattr(view.node, "args")
        else set()
    )
    for call in view.nodes(ast.Call):
        source = softmax_input(call, view) if isinstance(call, ast.Call) and callee(call) == "softmax" else None
        if source is None or not names_in(source) & given:
            continue
        assert isinstance(call, ast.Call)
        if applied_weights(call, view) is not None:
            return True
    return False


def _capped(attention: Attention) -> bool:
    """Whether scores are bounded before the softmax, which the fused call cannot do."""
    calls = (step.node for step in attention.before if step.what is What.OTHER)
    return any(isinstance(call, ast.Call) and callee(call).rstrip("_") in ("tanh", "clamp", "clip") for call in calls)


#: Queries or keys that are a handful beside the others.
_FEW = re.compile(r"(^|_)(global|landmarks?|pooled)(_|$)")


def _of_few(attention: Attention) -> bool:
    """Whether queries or keys are by their names a handful: no score matrix worth a word."""
    return any(_FEW.search(name) for side in (attention.query, attention.key) for name in names_in(side))


def _of_pixels(view: FunctionView, file: FileView) -> bool:
    """Whether it is the attention of a convolution network: one head as wide as the channels, for which no fused kernel
    is made, beside convolutions that take the time."""
    if "head" in own_text(view, file).lower():
        return False
    cls = whole_class(view, file)
    parts = () if cls is None else (node.func for node in ast.walk(cls) if isinstance(node, ast.Call))
    return any(getattr(func, "attr", getattr(func, "id", "")) in ("Conv1d", "Conv2d", "Conv3d") for func in parts)


def _told(attention: Attention, view: FunctionView) -> bool:
    """Whether another softmax of the same two products was found: the branches with and without a mask."""
    known = view.memo.setdefault(_told, {})
    return known.setdefault((attention.scores, attention.output), attention.softmax) is not attention.softmax


def _uses_in(statement: ast.stmt, name: str) -> list[ast.AST]:
    return [part for part in ast.walk(statement) if isinstance(part, ast.Name) and part.id == name]


def _is_sliced(view: FunctionView, file: FileView) -> bool:
    """Whether it works on slices to save memory, where the whole has a class of its own: off unless asked for."""
    own = view.qualname.partition(".")[0]
    if not own.startswith("Sliced"):
        return False
    whole = own[len("Sliced") :]
    return any(isinstance(cls, ast.ClassDef) and cls.name.startswith(whole) for cls in file.tree.body)


def _of_pooled_keys(view: FunctionView) -> bool:
    """Whether the function pools what it attends to: a handful of keys, and no score matrix worth a word."""
    calls = (callee(call) for call in view.nodes(ast.Call) if isinstance(call, ast.Call))
    return any(map(_POOLS.search, calls))


def _has_fused_twin(view: FunctionView, file: FileView) -> bool:
    """Whether this is one of several implementations: by its name, a fused call beside it, or a fused subclass."""
    if _EAGER.search(view.qualname.rpartition(".")[2]):
        return True
    if not _FUSED.search(file.text):
        return False
    segment = own_text(view, file)
    if _FUSED.search(segment):
        return True
    if view.class_name is None:
        return False
    own = view.class_name.rpartition(".")[2]
    return any(
        isinstance(cls, ast.ClassDef)
        and _FUSED_CLASS.search(cls.name) is not None
        and (
            (cls.name.startswith(own) and cls.name != own)
            or any(getattr(base, "id", getattr(base, "attr", "")) == own for base in cls.bases)
        )
        for cls in file.tree.body
    )
