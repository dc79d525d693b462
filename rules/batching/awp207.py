"""AWP207 padded-batch."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from awp_lint.detector.finding import Confidence, Effect, Event, Fix, MarkKind, RootCause, Safety
from awp_lint.detector.semantics.values import Kind
from awp_lint.detector.semantics.view import FileView, FunctionView
from awp_lint.rules.base import Candidate, Rule
from awp_lint.rules.batching.unsorted import unsorted_batches
from awp_lint.rules.common import (
    argument,
    callee,
    frequency_reason,
    judge,
    lower,
    often,
    own_text,
    served_frequency,
    short,
)
from awp_lint.rules.doubts import default_constants
from awp_lint.rules.fusion.context import whole_class

if TYPE_CHECKING:
    from awp_lint.rules.nodemap import Definition

_METHODS = frozenset({"encode", "encode_plus", "batch_encode_plus", "pad", "__call__"})
#: Models whose input has a fixed length by design.
_FIXED = re.compile(r"clip|siglip|\bt5|umt5|text_encoder|prompt_embeds|whisper|diffusers", re.IGNORECASE)
#: Lengths that the model itself gives: its longest input, or one that its layers are made for.
_OF_MODEL = re.compile(r"model_max_length|\.config\.")
#: Tokens that cost a model about as much as one, since it waits for its weights.
_SHORT = 64
#: Code that wants one shape.
_ONE_SHAPE = re.compile(r"compile|cuda_?graph|static|neuron|xla|onnx|tensorrt|export|capture|openvino", re.IGNORECASE)


class PaddedBatch(Rule):
    """Every request padded to one fixed length."""

    id = "AWP207"
    name = "padded-batch"
    root_cause = RootCause.SCHEDULING
    confidence = Confidence.MEDIUM
    cost_us = 2000.0
    event = Event.LAUNCHES
    mark = MarkKind.CALL
    words = (b"max_length", b"range(")
    nodes = (ast.Call, ast.For)

    summary = "requests are padded far beyond their own length"
    what = """
        A tokenizer called with `padding="max_length"` on a served path; and a list of texts that is cut into batches
        as it comes (`texts[i : i + n]`), each of which is padded to its longest text in front of a model.
        """
    why = """
        A text of 30 tokens padded to 512 makes the model compute 17 times as much. Linear layers cost in proportion,
        attention with the square of the length. One long text in a batch of short ones does the same to all of them:
        in the order of their lengths, batches hold texts that are alike.
        """
    fine = """
        - Models that expect one length: the text encoders of diffusion pipelines, CLIP, SigLIP, Whisper, recognised by
          the names in the function.
        - A length out of a model's `config`, for which its layers may be made: low confidence.
        - A length of at most 64 tokens, in numbers, or as the default of the parameter that holds it: low confidence.
        - One shape on purpose, for a compiled, captured or exported model, recognised likewise: shown at low
          confidence.
        - One batch padded to its longest item: that is what a request asked for. Batches of a list are told of only
          where nothing in the function speaks of sorting, buckets or lengths.
        """
    safety = """
        Unsafe (numerics, structure): the literal becomes `"longest"`, which is right where the model masks its padding
        and nobody counts on the length. Add `pad_to_multiple_of=64` where few shapes matter. Sorting a list by length
        before it is cut, and bringing the results back into order, is a recommendation.
        """
    tolerance = 16
    references = (
        "https://huggingface.co/docs/transformers/pad_truncation",
        "https://huggingface.co/docs/transformers/main_classes/tokenizer",
    )
    bad = """
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("classifier")
        model = AutoModelForSequenceClassification.from_pretrained("classifier").to("cuda").eval()

        @torch.inference_mode()
        def predict(texts: list[str]) -> torch.Tensor:
            batch = tokenizer(texts, padding="max_length", max_length=512, truncation=True, return_tensors="pt")
            return model(**batch.to("cuda")).logits
        """
    good = """
        import torch
        from transformers import AutoModelForSequenceClassification, AutoTokenizer

        tokenizer = AutoTokenizer.from_pretrained("classifier")
        model = AutoModelForSequenceClassification.from_pretrained("classifier").to("cuda").eval()

        @torch.inference_mode()
        def predict(texts: list[str]) -> torch.Tensor:
            batch = tokenizer(texts, padding=True, max_length=512, truncation=True, return_tensors="pt")
            return model(**batch.to("cuda")).logits
        """

    def candidates(self, node: ast.AST, view: FunctionView, file: FileView) -> Iterator[Candidate]:
        if isinstance(node, ast.For):
            yield from _in_order(node, view, file)
            return
        assert isinstance(node, ast.Call)
        padding = argument(node, None, "padding")
        if not (isinstance(padding, ast.Constant) and padding.value == "max_length"):
            return
        frequency = served_frequency(view, node)
        if frequency is None:
            return
        func = node.func
        owner = func.value if isinstance(func, ast.Attribute) and callee(node) in _METHODS else func
        known = view.value(owner)
        if known.kind not in (Kind.TOKENIZER, Kind.UNKNOWN):
            return
        length = argument(node, None, "max_length")
        named = f"{known.cls} {view.qualname} {own_text(view, file)}"
        if _FIXED.search(named):
            return
        longest = length is not None and _OF_MODEL.search(ast.unparse(length)) is not None
        low = known.kind is Kind.UNKNOWN or longest or _few(length, view, file) or _ONE_SHAPE.search(named) is not None
        to = f"{short(length, 30)} tokens" if length is not None else "the model's longest input"
        yield Candidate(
            node=node,
            message=f"`{short(owner, 40)}(...)` pads every text to {to} {often(frequency)}".rstrip(),
            action="pad to the longest of the batch (`padding=True`, with `pad_to_multiple_of` for few shapes)",
            confidence=Confidence.LOW if low else lower(self.confidence, judge(frequency)),
            frequency=frequency,
            why=('`padding="max_length"`', *frequency_reason(frequency)),
            data=padding,
        )

    def rewrite(self, candidate: Candidate, definition: Definition) -> Fix | None:
        if not isinstance(candidate.data, ast.Constant):
            return None
        code = definition.text(candidate.data)
        if code[1:-1] != "max_length":
            return None
        return Fix(
            title="pad to the longest of the batch",
            safety=Safety.UNSAFE,
            edits=(definition.replace(candidate.data, f"{code[0]}longest{code[-1]}"),),
            effects=(Effect.NUMERICS, Effect.STRUCTURE),
            requires=("the model masks padding, and nothing counts on the length",),
        )


def _few(length: ast.expr | None, view: FunctionView, file: FileView) -> bool:
    """Whether a length is a small number, or a parameter's whose default is one, kept by the object or not."""
    function: ast.AST | None = view.node
    if isinstance(length, ast.Attribute) and isinstance(length.value, ast.Name) and length.value.id == "self":
        cls = whole_class(view, file)
        methods = cls.body if cls is not None else []
        function = next((s for s in methods if isinstance(s, ast.FunctionDef) and s.name == "__init__"), None)
        field = ast.unparse(length)
        length = next((s.value for s in _assigned(function) if ast.unparse(s.targets[0]) == field), None)
    number: object = length.value if isinstance(length, ast.Constant) else None
    if isinstance(length, ast.Name) and isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
        number = default_constants(function.args).get(length.id)
    return isinstance(number, int) and number <= _SHORT


def _assigned(function: ast.AST | None) -> list[ast.Assign]:
    return [s for s in ast.walk(function) if isinstance(s, ast.Assign)] if function is not None else []


def _in_order(loop: ast.For, view: FunctionView, file: FileView) -> Iterator[Candidate]:
    for found in unsorted_batches(loop, view, file):
        frequency = served_frequency(view, found.padded)
        if frequency is None:
            return
        texts = short(found.texts, 40)
        yield Candidate(
            node=found.padded,
            message=f"batches of `{texts}` are padded to the longest text of each, in the order they come",
            action=f"sort `{texts}` by length before cutting batches, and put the results back into order",
            confidence=lower(PaddedBatch.confidence, judge(frequency)),
            frequency=frequency,
            why=(f"the loop of line {loop.lineno} cuts `{texts}` as it is", *frequency_reason(frequency)),
        )
