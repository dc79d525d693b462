"""AWP305 full-logits."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from awp_lint.detector.finding import Confidence, Edit, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.definition import is_none
from awp_lint.detector.semantics.positions import takes_last
from awp_lint.detector.semantics.values import Device, Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    assigned_name,
    callee,
    frequency_reason,
    lower,
    names_in,
    often,
    opaque,
    served_frequency,
    short,
    sureness,
    whole_program,
)
from awp_lint.rules.flow import resolve
from awp_lint.rules.fusion.algebra import number
from awp_lint.rules.fusion.context import fused_elsewhere
from awp_lint.rules.nodemap import Definition
from awp_lint.rules.numbers import whole

_HEAD = re.compile(
    r"(^|_)(lm_head|head|embed_out|unembed|to_logits|vocab_proj(ection)?|output_layer|output_projection)$"
)
_CAUSAL = re.compile(r"(ForCausalLM|LMHeadModel|ForConditionalGeneration)$")
_SELECTORS = frozenset({"gather", "index_select", "select", "squeeze", "mean", "take_along_dim", "pooler"})
_KEEPS = re.compile(r"logits_to_keep|logits_indices|last_token_only|only_last|compute_logits|logits_processor")


@dataclass(frozen=True, slots=True)
class _Head:
    """A head applied to all positions of ``hidden``; with ``last``, the last one of the result alone is used, here or
    (``callers``) by all who call the function."""

    call: ast.Call
    hidden: ast.expr
    last: bool
    callers: bool = False


class FullLogits(Rule):
    """The vocabulary head run on every position where one position is used."""

    id = "AWP305"
    name = "full-logits"
    root_cause = RootCause.COMPUTE
    confidence = Confidence.MEDIUM
    cost_us = 300.0
    event = Event.LAUNCHES
    words = (b"head", b"embed_out", b"to_logits", b"unembed", b"vocab_proj", b"output_layer", b"output_projection")
    nodes = (ast.Call,)
    doubted = True

    summary = "the vocabulary head runs on every position although one position is used"
    what = """
        A head (`self.lm_head(hidden_states)`) of whose result only the last position is read (`logits[:, -1]`), in the
        same function or, in a program of which all callers are seen, by everyone who calls it; and the head of a
        causal language model's `forward` that offers its callers no way to ask for fewer positions.
        """
    why = """
        In prefill the head is a matrix product of all prompt positions with the whole vocabulary, often the largest of
        the model, and its result (positions × vocabulary, mostly upcast to float32) can be the largest tensor of all.
        Generation uses one row of it.
        """
    fine = """
        - Scoring and training, which need the logits of all positions.
        - A `forward` with `logits_to_keep` or the like, or one that selects positions first.
        - Decode steps of one position: nothing to save, nor in a loop that hands on the cache that a call before it has
          filled (low confidence). A model that drafts for another is given one position always,
          and the head of a small vocabulary (codes of sounds) costs little beside the prompt: low confidence.
        """
    safety = """
        Unsafe: the product of one row may pick another kernel and round differently. The rewrite slices the head's
        input to `[:, -1:]`, so that `logits[:, -1]` reads the same position.
        """
    tolerance = 16
    references = (
        "https://huggingface.co/docs/transformers/main/en/model_doc/llama",
        "huggingface/transformers#31292 logits of the last position only, peak memory before and after",
    )
    bad = """
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self, layers: nn.ModuleList, dim: int, vocab: int) -> None:
                super().__init__()
                self.layers = layers
                self.lm_head = nn.Linear(dim, vocab, bias=False)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = layer(hidden_states)
                logits = self.lm_head(hidden_states)
                return logits[:, -1].argmax(-1)
        """
    good = """
        import torch
        from torch import nn

        class Decoder(nn.Module):
            def __init__(self, layers: nn.ModuleList, dim: int, vocab: int) -> None:
                super().__init__()
                self.layers = layers
                self.lm_head = nn.Linear(dim, vocab, bias=False)

            def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
                for layer in self.layers:
                    hidden_states = layer(hidden_states)
                logits = self.lm_head(hidden_states[:, -1:])
                return logits[:, -1].argmax(-1)
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        if len(node.args) != 1 or node.keywords or opaque(node) or not _HEAD.search(callee(node)):
            return
        found = _last_only(node, view)
        if found is None and _last_for_callers(node, view):
            found = _Head(node, node.args[0], True, callers=True)
        if found is None and _whole_forward(node, view):
            found = _Head(node, node.args[0], False)
        if found is None or not _is_head(node.func, view):
            return
        if fused_elsewhere(view, node) or view.value(found.hidden).device is Device.HOST:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        head, hidden = short(node.func, 40), short(found.hidden, 40)
        if found.last:
            message = f"`{head}` runs on every position of `{hidden}` {often(frequency)}, the last one is used"
            action = f"slice first: `{head}({hidden}[:, -1:])`"
        else:
            message = f"`{head}` runs on every position of `{hidden}` {often(frequency)}, generation uses the last one"
            action = f"take a `logits_to_keep` argument and slice `{hidden}` by it"
        level = sureness(view, node, frequency)
        if (not found.last and _costs_little(view, file)) or _of_one_token(found.hidden, view):
            level = Confidence.LOW
        yield Candidate(
            node=node,
            message=message.replace(" ,", ","),
            action=action,
            confidence=lower(self.confidence, level),
            frequency=frequency,
            why=frequency_reason(frequency),
            data=found,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        found = candidate.data
        if not isinstance(found, _Head) or not found.last:
            return None
        if not isinstance(found.hidden, ast.Name | ast.Attribute | ast.Call):
            return None
        definition.node(found.call)
        end = definition.range(found.hidden)[1]
        return Fix(
            title="run the head on the last position only",
            safety=Safety.UNSAFE,
            edits=(Edit(end, end, "[:, -1:]"),),
            effects=(Effect.NUMERICS, Effect.POSITIONS) if found.callers else (Effect.NUMERICS,),
            requires=("no caller beside those in the project needs the other positions",) if found.callers else (),
        )


_PASTS = re.compile(r"past(_key_values?)?|(kv_?)?cache|past_kv")


def _of_one_token(hidden: ast.expr, view: FunctionView) -> bool:
    """Whether a loop runs the model on what is new alone, with the cache that a call before the loop has filled."""
    made = resolve(hidden, view)
    while isinstance(made, ast.Subscript | ast.Attribute):
        made = resolve(made.value, view)
    loops = view.loops(hidden)
    if not loops or not isinstance(made, ast.Call):
        return False
    for keyword in made.keywords:
        if keyword.arg is not None and _PASTS.fullmatch(keyword.arg) and isinstance(keyword.value, ast.Name):
            inside = [loops[0] in view.loops(statement) for statement in view.assignments(keyword.value.id)]
            before = [s for s in view.assignments(keyword.value.id) if loops[0] not in view.loops(s)]
            return any(inside) and any(not is_none(getattr(s, "value", None)) for s in before)
    return False


_SMALL = 16_384  # entries of a vocabulary
_DRAFTS = re.compile(r"Assistant|Draft|Speculat")


def _costs_little(view: FunctionView, file: FileView) -> bool:
    """Whether a model's vocabulary is small by its configuration, or it only drafts."""
    if view.class_name is not None and _DRAFTS.search(view.class_name):
        return True
    sizes = file.defaults("vocab_size")
    return bool(sizes) and all((whole(size) or _SMALL) < _SMALL for size in sizes)


def _is_head(func: ast.expr, view: FunctionView) -> bool:
    value = view.value(func)
    return value.kind is Kind.MODULE or (value.kind is Kind.UNKNOWN and view.qualified(func) is None)


def _last_only(call: ast.Call, view: FunctionView) -> _Head | None:
    """The head's call where every use of its result takes position -1."""
    hidden = call.args[0]
    outer = _behind_casts(call, view)
    if outer is None:
        return None
    parent = view.parent(outer)
    if isinstance(parent, ast.Subscript) and parent.value is outer:
        return _Head(call, hidden, True) if takes_last(parent) and not _selected(hidden, view) else None
    name = assigned_name(view, outer)
    if name is None:
        return None
    uses = [use for use in view.uses(name) if _reads(use, outer, view)]
    if not uses or len(view.assignments(name)) > 2:
        return None
    for use in uses:
        above = view.parent(use)
        if not (isinstance(above, ast.Subscript) and above.value is use and takes_last(above)):
            return None
    return None if _selected(hidden, view) else _Head(call, hidden, True)


def _behind_casts(call: ast.Call, view: FunctionView) -> ast.AST | None:
    """The call with the casts of its result, ``head(x).float()``; None where such a method is not called."""
    outer: ast.AST = call
    parent = view.parent(outer)
    while isinstance(parent, ast.Attribute) and parent.attr in ("float", "to"):
        cast = view.parent(parent)
        if not (isinstance(cast, ast.Call) and cast.func is parent):
            return None
        outer, parent = cast, view.parent(cast)
    return outer


def _last_for_callers(call: ast.Call, view: FunctionView) -> bool:
    """Whether a program's own functions alone call this one, as those of its module or class alone call a private one,
    and take the last position of what the head gave them."""
    private = re.match(r"_(?!_)", view.qualname.rpartition(".")[2]) is not None
    if not (private or whole_program(view.frequency(call))):
        return False
    outer = _behind_casts(call, view)
    if outer is None:
        return False
    parent = view.parent(outer)
    if isinstance(parent, ast.Tuple) and parent.elts[0] is outer:
        parent = view.parent(parent)
    return isinstance(parent, ast.Return) and view.callers().last and not _selected(call.args[0], view)


def _reads(use: ast.Name, source: ast.AST, view: FunctionView) -> bool:
    """Whether a load of the name may read what ``source`` assigned: not where a later assignment stands between."""
    if view.parent(use) is None:
        return True
    behind = resolve(use, view, depth=1)
    return behind is source or behind is use


def _selected(hidden: ast.expr, view: FunctionView) -> bool:
    """Whether the head's input is already a part of the positions, or has no positions."""
    behind = resolve(hidden, view)
    if any(isinstance(part, ast.Subscript) and not _of_output(part, view) for part in (hidden, behind)):
        return True
    if isinstance(behind, ast.Call) and callee(behind) in _SELECTORS:
        return True
    return view.value(hidden).rank == 2 and number(hidden, view) is None


def _of_output(node: ast.Subscript, view: FunctionView) -> bool:
    """``outputs[0]``: the hidden states among what a model returned, every position of them."""
    index, outputs = node.slice, node.value
    if not (isinstance(index, ast.Constant) and index.value == 0 and isinstance(outputs, ast.Name)):
        return False
    named = outputs.id.endswith(("outputs", "output"))
    return (named or not view.value(outputs).is_tensor) and isinstance(resolve(outputs, view), ast.Call)


def _whole_forward(call: ast.Call, view: FunctionView) -> bool:
    """Whether this is the head of a causal model's forward, which takes no wish for fewer positions."""
    definition = view.node
    if not isinstance(definition, ast.FunctionDef) or definition.name != "forward" or view.class_name is None:
        return False
    if not _CAUSAL.search(view.class_name) or view.class_name.endswith("ForConditionalGeneration"):
        return False
    hidden = call.args[0]
    if not isinstance(hidden, ast.Name):
        return False
    arguments = definition.args
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    if any(_KEEPS.search(arg.arg) for arg in every):
        return False
    if not ({"input_ids", "tokens", "idx"} & {arg.arg for arg in every}):
        return False
    return not any(_KEEPS.search(name) for name in names_in(definition)) and not _selected(hidden, view)
