"""AWP312 unused-outputs."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, RootCause, Safety
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.common import (
    assigned_name,
    callee,
    frequency_reason,
    lower,
    often,
    served_frequency,
    short,
    sureness,
)
from awp_lint.rules.edits import drop_keyword
from awp_lint.rules.nodemap import Definition

#: What a keyword asks for, to the attributes of the result that hold it.
_OUTPUTS: dict[str, frozenset[str]] = {
    "output_hidden_states": frozenset({
        "hidden_states", "encoder_hidden_states", "decoder_hidden_states", "vision_hidden_states",
        "vision_model_output", "text_model_output", "image_hidden_states", "audio_hidden_states",
    }),
    "output_scores": frozenset({"scores"}),
    "output_logits": frozenset({"logits"}),
}  # fmt: skip
#: Outputs that only keep what the forward computes anyway: memory, and nothing is launched.
_REFERENCES = frozenset({"output_hidden_states"})
#: Arguments that choose among layers, whose states the model then makes its own result of.
_LAYERS = re.compile(r"(^|_)layers?(_|$)")
_REPEATERS = frozenset({"items", "keys", "values", "to_tuple", "get", "pop", "copy", "update"})


class UnusedOutputs(Rule):
    """A call that asks for extra outputs which nothing reads."""

    id = "AWP312"
    name = "unused-outputs"
    root_cause = RootCause.COMPUTE
    cost_us = 100.0
    event = Event.NONE
    words = (b"output_hidden_states", b"output_scores", b"output_logits")
    nodes = (ast.Call,)
    doubted = True

    summary = "a model returns extra outputs that nothing reads"
    what = """
        `output_hidden_states=True`, `output_scores=True` or `output_logits=True` in a call whose result stays local and
        is read for other things only.
        """
    why = """
        The hidden states of all layers, or the scores of every generated token over the whole vocabulary, stay
        allocated until the result is dropped: memory that a larger batch or a longer cache could use. `generate` also
        copies the scores of each step, and captured or compiled forwards must write them out.
        """
    fine = """
        - The result is returned, stored, passed on or iterated: someone else may read it.
        - `hidden_states` or `scores` is read, by name or by index.
        - `output_hidden_states` of a forward that runs once a request: it keeps tensors that are there anyway, and
          launches nothing. Shown at low confidence.
        - `output_hidden_states` beside an argument that chooses among layers (`cutoff_layers=…`): the model makes its
          result of their states. Shown at low confidence.
        - `return_dict_in_generate=True` alone: it costs nothing by itself. `output_attentions` is AWP505.
        """
    safety = """
        Unsafe: the keyword is deleted, and with it the attribute from the result.
        """
    references = ("https://huggingface.co/docs/transformers/main_classes/output",)
    bad = """
        import torch
        from transformers import AutoModel

        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @torch.inference_mode()
        def predict(input_ids: torch.Tensor) -> torch.Tensor:
            outputs = model(input_ids.to("cuda"), output_hidden_states=True)
            return outputs.last_hidden_state[:, 0]
        """
    good = """
        import torch
        from transformers import AutoModel

        model = AutoModel.from_pretrained("encoder").to("cuda").eval()

        @torch.inference_mode()
        def predict(input_ids: torch.Tensor) -> torch.Tensor:
            outputs = model(input_ids.to("cuda"), output_hidden_states=True)
            return torch.stack(outputs.hidden_states[-4:]).mean(0)[:, 0]
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        assert isinstance(node, ast.Call)
        asked = [k for k in node.keywords if k.arg in _OUTPUTS and _true(k.value)]
        if not asked or callee(node) in ("dict", "from_pretrained", "update", "GenerationConfig"):
            return
        read = _attributes_read(node, view)
        if read is None:
            return
        unused = [k.arg for k in asked if k.arg is not None and not _OUTPUTS[k.arg] & read]
        if not unused:
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        confidence = lower(Confidence.MEDIUM, sureness(view, node, frequency))
        if "output_hidden_states" in unused and any(_LAYERS.search(k.arg or "") for k in node.keywords):
            confidence = Confidence.LOW
        if set(unused) <= _REFERENCES and not frequency.hot:
            confidence = Confidence.LOW
        named = ", ".join(f"`{name}=True`" for name in unused)
        yield Candidate(
            node=node,
            message=f"`{short(node.func, 40)}(...)` returns what nothing reads {often(frequency)}: {named}".replace(
                " :", ":"
            ),
            action=f"delete {named}",
            confidence=confidence,
            frequency=frequency,
            why=(f"of the result only {_listed(read)} is read", *frequency_reason(frequency)),
            data=tuple(unused),
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        call, unused = candidate.node, candidate.data
        if not isinstance(call, ast.Call) or not isinstance(unused, tuple):
            return None
        definition.node(call)
        edits = [edit for name in unused if (edit := drop_keyword(call, name, definition)) is not None]
        if len(edits) != len(unused):
            return None
        return Fix(
            title=f"do not ask for {', '.join(name.removeprefix('output_') for name in unused)}",
            safety=Safety.UNSAFE,
            edits=tuple(edits),
            effects=(Effect.STRUCTURE,),
        )


def _true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def _listed(names: frozenset[str]) -> str:
    return ", ".join(f"`{name}`" for name in sorted(names))


def _attributes_read(call: ast.Call, view: FunctionView) -> frozenset[str] | None:
    """The attributes that are read of a call's result; None where it goes somewhere else."""
    parent = view.parent(call)
    if isinstance(parent, ast.Attribute):
        return _plain(parent.attr)
    if isinstance(parent, ast.Subscript):
        return _key(parent)
    name = assigned_name(view, call)
    if name is None or len(view.assignments(name)) != 1:
        return None
    found: set[str] = set()
    for use in view.uses(name):
        above = view.parent(use)
        read: frozenset[str] | None = None
        if isinstance(above, ast.Attribute) and isinstance(above.ctx, ast.Load):
            read = _plain(above.attr)
        elif isinstance(above, ast.Subscript) and above.value is use:
            read = _key(above)
        if read is None:
            return None
        found |= read
    return frozenset(found) or None


def _plain(attribute: str) -> frozenset[str] | None:
    return None if attribute in _REPEATERS else frozenset({attribute})


def _key(node: ast.Subscript) -> frozenset[str] | None:
    """``out["logits"]``; by number only the first output is the same whatever was asked for."""
    if isinstance(node.slice, ast.Constant):
        if isinstance(node.slice.value, str):
            return frozenset({node.slice.value})
        if node.slice.value == 0:
            return frozenset({"[0]"})
    return None
